"""Acceptance of draft tokens, indexed by output position."""
