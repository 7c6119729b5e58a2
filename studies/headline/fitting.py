"""The law of the miniature headline: rival forms, the choice among them, and what the law says of architectures it never saw.

Nothing here imports the other stages: the tests recompute the page's figures from `docs/data/trained.csv` with it.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau, rankdata, spearmanr, t

from nas.study.catalogue import load_law
from objectives.loss_law.features import feature
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray
from search_spaces.columns import SHAPE

HERE = Path(__file__).resolve().parent
STUDY, FORMS = HERE / "study.yaml", HERE / "forms"
FIRST = "hw_codesign_log_kv"  # its report holds every shipped form under the same validation
LAW_PARTS = ("training", "repeated")
TIE = 1e-4  # nats
RESAMPLES, LEVEL = 10_000, 0.95
Interval = tuple[float, float, float]  # value, low, high
Row = Mapping[str, str]


@dataclass(frozen=True)
class Form:
    """What the ten folds say of a form, nats; `asked`: what --form takes."""

    name: str
    asked: str
    coefficients: int
    rmse: float
    bic: float


def forms_of(table: Path, folder: Path) -> list[Form]:
    """Every form that the rows allow, the best first; reports are kept in the folder."""
    first = fitted(table, FIRST, folder / f"{FIRST}.json")
    found = [_form(name, name, told) for name, told in first["forms"].items() if isinstance(told, dict)]
    for path in sorted(FORMS.glob("*.yaml")):
        own = fitted(table, str(path), folder / f"{path.stem}.json")
        found.append(_form(path.stem, str(path), next(iter(own["forms"].values()))))
    return sorted(found, key=lambda form: form.rmse)


def _form(name: str, asked: str, told: Mapping[str, Any]) -> Form:
    return Form(name, asked, told["coefficients"], told["folds_rmse"], told["bic"])


def chosen_form(forms: Sequence[Form]) -> Form:
    """The form of lowest RMSE over the folds; of those within `TIE` the one with fewest coefficients."""
    return min((form for form in forms if form.rmse <= forms[0].rmse + TIE), key=lambda form: form.coefficients)


def fitted(table: Path, form: str, report: Path) -> dict[str, Any]:
    """The JSON of `plas fit`, kept; computed where it is not there."""
    if not report.exists():
        line = [
            sys.executable,
            "-m",
            "plas_fit",
            str(table),
            "--form",
            form,
            "--config",
            str(STUDY),
            "--json",
            "--quiet",
        ]
        report.write_text(subprocess.run(line, stdout=subprocess.PIPE, check=True, text=True).stdout, encoding="utf-8")
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found


def architectures_of(rows: Sequence[Row]) -> Architectures:
    """The architectures of rows."""
    return Architectures.from_columns({name: np.array([int(row[name]) for row in rows]) for name in SHAPE})


def losses_of(rows: Sequence[Row]) -> FloatArray:
    """Trained losses, nats per byte, (n,)."""
    return np.array([float(row["loss"]) for row in rows])


def predictors(law: Law, rows: Sequence[Row]) -> dict[str, FloatArray]:
    """What orders architectures by loss: the law, and parameters and active parameters with their signs turned, (n,) each."""
    found = architectures_of(rows)
    return {
        "the fitted law": law.loss(found),
        "the paper's law": load_law("hw_codesign").loss(found),
        "parameters": -feature(found, "parameters"),
        "active parameters": -feature(found, "active_parameters"),
    }


def correlations(loss: FloatArray, known: Mapping[str, FloatArray]) -> tuple[dict[str, Interval], Interval]:
    """Spearman's of each predictor with the loss, and of the first less the better of the two counts, with intervals.

    Percentile intervals of resampled architectures. Of a resample in which everything ties nothing is known: left out.
    """
    generator = np.random.default_rng(0)
    drawn = generator.integers(0, len(loss), (RESAMPLES, len(loss)))
    columns = {name: _spearman(values[drawn], loss[drawn]) for name, values in known.items()}
    whole = {name: float(spearmanr(values, loss).statistic) for name, values in known.items()}
    better = max(("parameters", "active parameters"), key=lambda name: whole[name])
    first = next(iter(known))
    gain = (whole[first] - whole[better], *_interval(columns[first] - columns[better]))
    return {name: (whole[name], *_interval(columns[name])) for name in known}, gain


def _spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """Row by row, (resamples,)."""
    a, b = (rankdata(values, axis=1) for values in (x, y))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1)))


def _interval(values: FloatArray) -> tuple[float, float]:
    low, high = np.nanquantile(values, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return float(low), float(high)


def agreement(predicted: FloatArray, measured: FloatArray) -> tuple[float, float]:
    """Median |predicted / measured − 1| and Kendall's tau."""
    return float(np.median(np.abs(predicted / measured - 1))), float(kendalltau(predicted, measured).statistic)


def verdict(low: float, high: float, words: Sequence[str]) -> str:
    """The first word of an interval below 0, the second of one above, the third of one that holds it."""
    return words[0] if high < 0 else words[1] if low > 0 else words[2]


def of_parts(rows: Sequence[Row], *parts: str) -> list[Row]:
    """The rows of some parts that have a loss."""
    return [row for row in rows if row["part"] in parts and row["status"] == "ok"]


def means(rows: Sequence[Row]) -> dict[str, AnyArray]:
    """The losses of each id over its seeds."""
    ids = dict.fromkeys(row["id"] for row in rows)
    return {each: losses_of([row for row in rows if row["id"] == each]) for each in ids}


def welch(ours: FloatArray, theirs: FloatArray, level: float = LEVEL) -> Interval:
    """Mean of ours less mean of theirs with the interval of Welch's test at a level, nats."""
    parts = [values.var(ddof=1) / len(values) for values in (ours, theirs)]
    error = float(np.sqrt(sum(parts)))
    freedom = sum(parts) ** 2 / sum(part**2 / (len(v) - 1) for part, v in zip(parts, (ours, theirs), strict=True))
    reach = float(t.ppf(0.5 + level / 2, freedom)) * error
    gain = float(ours.mean() - theirs.mean())
    return gain, gain - reach, gain + reach


def holm(p_values: Sequence[float]) -> list[float]:
    """P values of several tests at once, adjusted by Holm, in the order given."""
    order, adjusted, least = np.argsort(p_values), [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = least
    return adjusted
