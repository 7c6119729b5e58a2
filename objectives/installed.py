"""Versions of installed packages, for provenance; a checkout that is not installed has none."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "plas-codesign"


@cache
def version_of(package: str) -> str:
    """Version of a distribution, or `not installed`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
