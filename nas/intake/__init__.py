"""Logs of other people's benchmarks, as the measured rows that `calibrate` reads.

A reader per format says which figures a document holds; which of our architectures was measured is found once for all of them.
"""
