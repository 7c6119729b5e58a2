"""Readers of thirteen more formats of logs for `plas calibrate`, a module each, found by their entry points."""
