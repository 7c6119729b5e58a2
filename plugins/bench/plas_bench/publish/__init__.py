"""Comparisons for a paper: what `plas compare` leaves to researchers, over a finished folder of it or traces of other tools alone.

LaTeX tables, the diagram of mean ranks, the power of the tests, hypervolumes within a given point, and runs of other tools (`external_results`).
"""
