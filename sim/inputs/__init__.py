"""Scenario and calibration files: read, checked with positions, resolved into the arms of a comparison."""
