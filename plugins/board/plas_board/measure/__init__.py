"""Candidates measured on real hardware, each in a process of its own, recorded, resumable; `measure` as an objective."""
