"""report.json: the content of a fit's or a calibration's page, from which it is made again."""

from pathlib import Path
from typing import Any

from nas.errors import PlasError, UsageError
from objectives import outside

FILE, VERSION = "report.json", 1
KINDS = ("fit", "fit_on_prior", "calibration")
MOST_BYTES = 60_000_000
#: Keys under which nothing means nothing; a null under any other, and in lists, was a number that JSON does not know.
NOTHING = {
    *("unit", "sweep", "replicates", "lack_of_fit", "given_law", "frontier", "near_frontier", "largest", "largest_by"),
    *("mixture", "beyond_rows", "order", "excess", "excess_error"),
    *("folds_excess", "folds_excess_error", "worst_level_rmse", "largest_rmse", "largest_bias"),
    *("tokens", "expected_regret", "assumed_tokens"),
}


def stamped(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """Content with what it is and the version of its layout, first."""
    return {"kind": kind, "version": VERSION, **content}


def read_report(folder: Path) -> dict[str, Any]:
    """The report in a folder, which may come from outside.

    Raises:
        UsageError: there is none, or a link.
        PlasError: it is damaged, too long, or of another version.
    """
    path = folder / FILE
    try:
        content = outside.json_of(path, MOST_BYTES, own=True)
    except OSError as error:
        raise UsageError(f"{path}: expected a report, got {error.strerror}; name its folder") from None
    except ValueError:
        raise PlasError(f"{path}: expected JSON, got something else; make it again") from None
    if not isinstance(content, dict) or content.get("kind") not in KINDS:
        raise UsageError(f"{path}: expected a report of a fit or a calibration, got another file; make it again")
    if content.get("version") != VERSION:
        found = content.get("version")
        raise PlasError(f"{path}: expected version {VERSION}, got {found!r}; open it with the version that wrote it")
    return {key: known(value, key) for key, value in content.items()}


def known(value: Any, key: str = "") -> Any:
    """Content as it was before it was written: numbers that JSON does not know are NaN again."""
    if isinstance(value, dict):
        return {name: known(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [known(each) for each in value]
    return float("nan") if value is None and key not in NOTHING else value
