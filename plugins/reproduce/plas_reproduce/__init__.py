"""The paper's claims, each recomputed and judged by closed forms and exact solutions."""

import nas  # noqa: F401  (with `python -m plas_reproduce` it leaves the working folder before anything else is imported)
