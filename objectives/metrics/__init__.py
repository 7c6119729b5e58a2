"""Metrics, one file each, found by file name."""
