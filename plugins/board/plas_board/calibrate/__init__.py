"""Profiles fitted to measured times, and logs of other people's benchmarks as the rows that it reads.

A reader per format says which figures a document holds; which of our architectures was measured is found once for all of them.
"""
