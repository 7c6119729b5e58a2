"""Calibration: measured latencies to the achieved share of a device's datasheet."""
