"""The work of `run --measure-top`: a search, then a diverse few of its frontier measured on this machine."""

from importlib.util import find_spec
from pathlib import Path

from nas.commands.requests import RunRequest
from nas.commands.run import execute
from nas.errors import UsageError
from nas.measure.command import carry_out
from nas.measure.request import MeasureRequest


def search_and_measure(request: RunRequest) -> Path:
    """Search, then measure; the run's folder. What could not be measured is refused before the search.

    Raises:
        UsageError: PyTorch is missing, or JSON was asked for.
    """
    if request.json:
        raise UsageError(
            "measure_top: expected no --json with it, got both; use 'plas measure RUN' for the second step"
        )
    if find_spec("torch") is None:
        raise UsageError(
            "measure_top: expected PyTorch in this environment, got none; install it, or use 'plas measure RUN --interpreter PYTHON'"
        )
    folder, how = execute(request), f"diverse:{request.measure_top}"
    carry_out(MeasureRequest(folder, how, out=folder.with_name(f"{folder.name}-measured"), quiet=request.quiet))
    return folder
