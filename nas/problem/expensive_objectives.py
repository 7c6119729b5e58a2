"""Objectives that ship and cost, by the module of their command; light to import, since completion reads it.

A module has `UNIT`, `LOG_SCALE`, `PRIOR` and `COST_S`, as shipped metrics and functions of one's own have; `resolved_settings`, which
checks the study's settings before anything runs and completes them; `refuse_here`, what this machine lacks; and the function.
"""

EXPENSIVE = {"measure": "nas.measure.objective", "train": "nas.train.objective"}
