"""Fleets, the best one, two, three … models that serve all cases of a device study, and pairs of a model and its draft."""
