"""Fleets, the best one, two, three … models that serve all cases of a device study, and pairs of a model and its draft.

fleets = plas_fleet.fleets(nas.load_study(), "1..3", devices=["l4", "rtx_4090"])
fleets.values
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plas_fleet.api import Fleets as Fleets
    from plas_fleet.api import fleets as fleets

PUBLIC = ("Fleets", "fleets")  # imported when first used, so that `--help` stays quick


if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in PUBLIC:
            raise AttributeError(f"module 'plas_fleet' has no attribute {name!r}")
        return getattr(importlib.import_module("plas_fleet.api"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *PUBLIC])
