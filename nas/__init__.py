"""PLAS: multi-objective, hardware-aware architecture search of on-device LLMs.

    study = nas.load_study(device="jetson_orin_nano_super_8gb", preset="device", precision="int8")
    frontier = study.solve()
    frontier.pick("total_ms<=100")

docs/python.md shows the rest.
"""

import importlib
from typing import TYPE_CHECKING, Any

from nas.terminal.import_path import keep_together, leave_working_folder

PLAS = "plas-codesign"
leave_working_folder()
keep_together()

from nas.terminal.interrupts import guard_imports  # noqa: E402  (what it imports must not come from the working folder)

guard_imports()

if TYPE_CHECKING:
    from nas.api.frontier import Frontier as Frontier
    from nas.api.run_folder import Run as Run
    from nas.api.run_folder import read_run as read_run
    from nas.api.study import Study as Study
    from nas.api.study import load_study as load_study
    from nas.errors import InfeasibleError as InfeasibleError
    from nas.errors import PlasError as PlasError
    from nas.errors import UsageError as UsageError
    from plas_fit.fitted_law import FittedLaw as FittedLaw
    from plas_fit.fitted_law import fit_law as fit_law

PUBLIC = {
    "load_study": "nas.api.study",
    "Study": "nas.api.study",
    "Frontier": "nas.api.frontier",
    "read_run": "nas.api.run_folder",
    "Run": "nas.api.run_folder",
    "fit_law": "plas_fit.fitted_law",
    "FittedLaw": "plas_fit.fitted_law",
    "PlasError": "nas.errors",
    "UsageError": "nas.errors",
    "InfeasibleError": "nas.errors",
}  # where each lives: imported when first used, so that `import nas` and `--help` stay quick


if not TYPE_CHECKING:  # a type checker would take any name for one of ours
    __all__ = [*PUBLIC]

    def __getattr__(name: str) -> Any:
        if name not in PUBLIC:
            raise AttributeError(f"module 'nas' has no attribute {name!r}")
        return getattr(importlib.import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(PUBLIC)
