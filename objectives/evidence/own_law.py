"""The law that own trainings make of a prior: coefficients, draws, ranges and where it comes from."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from objectives.evidence.joint_form import FORM, REFERENCE, coefficients, excess
from objectives.evidence.posterior import Belief
from objectives.fitting.law_file import PACKAGES, covered, fitted_ranges, rows
from objectives.fitting.trained_models import Table
from objectives.installed import version_of
from objectives.loss_law.coverage import DesignKind, Region, joined
from objectives.loss_law.law import Law
from objectives.loss_law.origin import tables_seen
from search_spaces.arrays import FloatArray

NAME = "joint"
NOT_KEPT = ("covariance", "transcribed", "implied_residual_sd", "layer_delta_draws", "tokenizer", "data")


def own_law(prior: Law, found: Belief, table: Table, name: str, tokens: float, group: str = "") -> Law:
    """A law of the belief, with draws of it; what the prior says of more than losses stays.

    group: the one whose level it has, where the table tells several.
    """
    kept = {key: value for key, value in prior.mapping().items() if key not in NOT_KEPT}
    covers = covered_together(prior, table)
    return Law.model_validate(
        kept
        | {
            "name": name,
            "description": f"{prior.name} updated by {len(table)} own trainings",
            "coefficients": named(found.mean),
            "draws": rows(np.array([list(named(each).values()) for each in found.drawn()])),
            "residual_sd": found.scale,
            "fitted_on": fitted_ranges(covers) if covers else widened(prior.fitted_on, table),
            "covers": {kind: region.model_dump() for kind, region in covers.items()},
            "tokens": tokens,
            "runs": len(table),
            "source": f"plas fit --prior {prior.name}",
            "provenance": _provenance(prior, table, group)
            | ({} if np.isinf(found.freedom) else {"freedom": found.freedom}),
        }
    )


def named(point: FloatArray) -> dict[str, float]:
    """The form's coefficients, in its order, of coordinates and, last, the loss at the reference, (k + 1,)."""
    theta = point[:-1]
    found = coefficients(theta, float(point[-1] - excess(theta, REFERENCE)[0]))
    return {name: found[name] for name in FORM.coefficients}


def covered_together(prior: Law, table: Table) -> dict[DesignKind, Region]:
    """What the prior's rows and own ones cover, of the kinds of designs that own rows have: of another kind they say nothing. {} of a prior that does not say."""
    own = covered([table])
    return {kind: region for kind, region in joined(prior.covers, own).items() if kind in own} if prior.covers else {}


def widened(ranges: Mapping[str, tuple[float, float]], table: Table) -> dict[str, tuple[float, float]]:
    """The prior's ranges, with the table's rows inside."""
    return {name: _with_rows(ends, table, name) for name, ends in ranges.items()}


def _with_rows(ends: tuple[float, float], table: Table, name: str) -> tuple[float, float]:
    if not table.has(name):
        return ends
    column = table.feature(name)
    return min(ends[0], float(column.min())), max(ends[1], float(column.max()))


def fingerprint(law: Law) -> str:
    """The SHA-256 of a law's content without where it comes from."""
    content = {key: value for key, value in law.mapping().items() if key != "provenance"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _provenance(prior: Law, table: Table, group: str) -> dict[str, Any]:
    told = table.has("tokens")
    return {
        "tables": [asdict(source) for source in table.sources],
        "rows": len(table),
        "tokens": [float(table.feature("tokens").min()), float(table.feature("tokens").max())] if told else None,
        "form": NAME,
        "prior": {"name": prior.name, "sha256": fingerprint(prior), **({"rows": prior.runs} if prior.runs else {})},
        **({"seen": seen} if (seen := tables_seen(prior)) else {}),
        **({"group": group} if group else {}),
        "versions": {package: version_of(package) for package in PACKAGES},
    }
