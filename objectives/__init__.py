"""Costs of an architecture: loss laws, latency, memory, devices."""

PLAS = "plas-codesign"
