"""A loss law fitted to trained architectures: verdict and report, designs to train next, whether the frontier stays.

The statistics are in `plas_fit.fitting`; here they meet a study.
"""
