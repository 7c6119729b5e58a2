"""What an architecture costs: loss laws, latency, memory, devices."""

PLAS = "plas-codesign"
