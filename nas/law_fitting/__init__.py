"""Fitting a loss law for people: what was asked, verdict and report, designs to train next, whether the frontier stays.

The statistics are in `objectives.fitting`; here they meet a study.
"""
