"""Requests: who asks, when, and how much."""
