"""The verdict on own rows over a prior: one sentence, then what it rests on."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nas.fit.prior_report import SURPRISING
from nas.fit.verdict import picks_judged

FEW = 4  # rows below which shape is the prior's
MISFIT = 3.0  # residual sds over the prior's from which the form is doubted
MANY = 0.25  # share of surprising rows from which the prior is doubted


def prior_verdict(content: Mapping[str, Any]) -> list[str]:
    """Lines of the verdict, the summary first."""
    doubts = [
        *(["the unit of the losses"] if content["data"]["unit"] else []),
        *(["whether rows and prior agree"] if _strange(content) else []),
        *(["few rows"] if content["data"]["rows"] < FEW else []),
    ]
    word, picks = picks_judged(content["frontier"], content["residual_sd"]["posterior"])
    doubts += [word] if word else []
    summary = f"Not settled by these rows: {', '.join(doubts)}." if doubts else "Usable for picks inside the range."
    unit = content["data"]["unit"]
    return [summary, *([unit] if unit else []), *_rows(content), *_surprise(content), _shrunk(content), picks]


def _strange(content: Mapping[str, Any]) -> bool:
    """Whether many rows surprise the prior, or its form leaves much more than the prior's residual sd."""
    off = np.abs(content["rows"]["surprise"]) > SURPRISING
    sd = content["residual_sd"]
    return bool(off.mean() > MANY or sd["posterior"] > MISFIT * sd["prior"])


def _rows(content: Mapping[str, Any]) -> list[str]:
    rows = content["data"]["rows"]
    if rows >= FEW:
        return []
    moved = "the level alone" if rows == 1 else "level and slopes"
    return [f"rows: {rows} of {FEW} at least: {moved} moved, the rest is {content['prior']}'s; train {FEW - rows} more"]


def _surprise(content: Mapping[str, Any]) -> list[str]:
    rows, sd = content["rows"], content["residual_sd"]
    off = [str(line) for line, each in zip(rows["line"], rows["surprise"], strict=True) if abs(each) > SURPRISING]
    which = f"line {off[0]} lies" if len(off) == 1 else f"lines {', '.join(off)} lie"
    said = [f"surprise: {which} beyond {SURPRISING:g} sds of what the prior expected"] if off else []
    if sd["posterior"] > MISFIT * sd["prior"]:
        said.append(
            f"residuals: an sd of {sd['posterior']:.2g} nats where the prior's laboratories have {sd['prior']:.2g}: "
            "look for another recipe, unit or count of parameters among the rows, or tell recipes apart by a column group"
        )
    return said


def _shrunk(content: Mapping[str, Any]) -> str:
    known, regret = content["differences"], content["expected_regret"]
    line = f"differences: 90 % intervals are {known['posterior'] / known['prior']:.2f} as wide as the prior's"
    if regret is None:
        return line
    return f"{line}; the picks' expected regret is {regret['posterior']:.2g} nats (under the prior alone {regret['prior']:.2g})"
