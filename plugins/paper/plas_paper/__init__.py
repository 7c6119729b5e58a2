"""Part of plas-codesign's wheel, around its core: the paper's theory, corrected: regimes, closed forms, the convex program and its bound, the best design under it."""
