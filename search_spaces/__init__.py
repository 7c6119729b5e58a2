"""Architectures as columns, and discrete spaces of them."""

PLAS = "plas-codesign"
