"""Digest of a front that is the same wherever it is computed: of values to seven digits, without what then is dominated or repeated."""

import hashlib

import moocore
import numpy as np

from search_spaces.arrays import FloatArray, IntArray

DIGITS = 7  # the last bits of logarithms and powers differ between processors, and with them which of two equal designs is a member


def canonical(values: FloatArray) -> FloatArray:
    """Different non-dominated vectors of (n, m), to seven significant digits, in lexicographic order."""
    coarse = np.array([[float(f"{value:.{DIGITS - 1}e}") for value in row] for row in values.tolist()])
    different: FloatArray = np.unique(coarse.reshape(-1, values.shape[1]), axis=0)
    return different[moocore.is_nondominated(different)] if len(different) else different


def sha256_of_keys(keys: IntArray) -> str:
    """SHA-256 of the numbers of designs, in ascending order, a line each."""
    return hashlib.sha256("\n".join(map(str, sorted(keys.tolist()))).encode()).hexdigest()


def sha256_of(vectors: FloatArray) -> str:
    """SHA-256 of `canonical` vectors, a line each."""
    lines = (" ".join(f"{value:.{DIGITS - 1}e}" for value in row) for row in vectors.tolist())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
