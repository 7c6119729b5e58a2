"""Objectives that ship and cost, one file each, found by file name: a training, a measurement, where the worker is.

A module has `UNIT`, `LOG_SCALE`, `PRIOR` and `COST_S`, as shipped metrics and functions of one's own have; `settled`, which
checks the study's settings before anything runs and completes them; `refuse_here`, what this machine lacks; and the function.
"""
