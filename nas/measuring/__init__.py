"""Measurement of candidates on real hardware: each in a process of its own, recorded, resumable."""
