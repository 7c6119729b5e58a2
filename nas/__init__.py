"""PLAS: multi-objective, hardware-aware architecture search of on-device LLMs."""

PLAS = "plas-codesign"
