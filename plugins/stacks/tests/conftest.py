"""Fixtures of the packages' tests of exports: the core's small models."""

from core_tests import loaded

models = loaded("nas/export/conftest.py")
small, exported = models.small, models.exported
