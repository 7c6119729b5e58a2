"""Fixtures of the packages' tests of exports: the core's small models."""

from tests.nas.export.conftest import exported, pytest_collection_modifyitems, small

__all__ = ["exported", "pytest_collection_modifyitems", "small"]
