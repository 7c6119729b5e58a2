"""Part of plas-codesign's wheel, around its core: the paper's theory, corrected: regimes, closed forms, the convex program and its bound, the best design under it."""

import nas  # noqa: F401  (with `python -m plas_paper` it leaves the working folder before anything else is imported)
