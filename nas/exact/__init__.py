"""Exact frontiers of whole spaces, by sums of parts or by enumeration, with gains, sweeps and steps beyond an axis.

It knows problems, frontiers, and the checkpoint of a solution that may be killed.
"""
