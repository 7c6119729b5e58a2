"""The exact frontier of a whole space, by sums of parts or by enumeration, and what follows: gains, sweeps, steps beyond an axis.

It knows problems, frontiers, and the checkpoint of a solution that may be killed.
"""
