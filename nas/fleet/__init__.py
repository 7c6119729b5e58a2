"""Fleets: the best one, two, three … models that serve all cases of a device study.

It knows the cases of `nas.devices`, which it takes as they are, and exact searches; nobody below knows of fleets.
"""
