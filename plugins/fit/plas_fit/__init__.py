"""Part of plas-codesign's wheel, around its core: a loss law fitted to trained architectures: verdict and report, designs to train next, whether the frontier stays.

The statistics are in `plas_fit.fitting` and `plas_fit.evidence`; here they meet a study.
"""

import nas  # noqa: F401  (with `python -m plas_fit` it leaves the working folder before anything else is imported)
