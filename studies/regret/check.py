"""The regrets of three tables again, with none of the study's code: rows by the csv module, loops over designs, the law's formula written out.

    python studies/regret/check.py choices.csv

`choices.csv` is what `python -m studies.regret --choices choices.csv` writes. Gemstones is dense and gated, Routing ungated with experts in every other layer, DeepSeekMoE has shared experts.
Only the laboratories' population, and what a design takes on a device, come from PLAS. Exit code 1 where a regret differs by more than 2e-6.
"""

import csv
import math
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

from plas_evidence.tables import base

from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from search_spaces.architectures import Architectures
from studies.evidence.population import law_of, population

SOURCES = Path(__file__).parents[2] / "objectives" / "evidence" / "sources"
TABLES = {
    "Gemstones": ("gemstones.csv", "University of Maryland"),
    "Routing": ("routing.csv", "DeepMind"),
    "DeepSeekMoE": ("deepseek_moe.csv", "DeepSeek"),
}
CHECKED = ("evidence", "evidence, least regret", "most active", "most active, then stored", "most parameters", "random")
Row = dict[str, float]


def law_without(laboratory: str) -> Any:
    """The law evidence of the other laboratories."""
    others = [table.trainings for table in base() if table.laboratory != laboratory]
    return law_of(population(others), load_law("evidence").provenance["widening"], others)


def loss_by(c: dict[str, float], row: Row) -> float:
    """The law's formula for one design."""
    wider = 2 * row["depth"] * row["width"] * (row["query_dim"] - row["kv_dim"])
    capacity = c["A"] * (row["active_parameters"] + wider) ** -c["alpha_active"]
    capacity *= (row["parameters"] + wider) ** -c["alpha_stored"]
    aspect = row["width"] / row["depth"]
    capacity *= aspect ** c["aspect"] * math.exp(c["aspect_squared"] * math.log(aspect) ** 2)
    capacity *= (row["query_dim"] / row["width"]) ** c["h_query"] * row["top_k"] ** c["h_split"]
    data = c["B"] * row["tokens"] ** -c["beta"]
    return float(c["level"] + (capacity ** c["kappa"] + data ** c["kappa"]) ** (1 / c["kappa"]))


def architecture(table: str, row: Row) -> Architectures:
    """One design as PLAS prices it."""
    routed, ratio = row["n_experts"] > 1, row["expert_ffn_ratio"]
    whole = row.get("ffn_ratio", row["top_k"] * ratio)
    head = row.get("head_dim", 64.0)
    columns = {
        "depth": row["depth"],
        "width": row["width"],
        "head_dim": head,
        "n_heads": row["query_dim"] / head,
        "n_kv_heads": row["kv_dim"] / head,
        "n_experts": row["n_experts"],
        "top_k": row["top_k"],
        "expert_size": row["width"] * (ratio if routed else whole),
    }
    if table == "Routing":
        columns |= {"ungated_ffn": 1, "n_dense": row["depth"] // 2 if routed else 0}
        columns |= {"dense_size": 4 * row["width"] if routed else 0}
    elif routed:
        columns |= {"shared_expert_size": (whole - row["top_k"] * ratio) * row["width"]}
    return Architectures.from_columns({name: [round(value)] for name, value in columns.items()})


def quantity(table: str, row: Row, kind: str, problems: dict[str, Any]) -> float:
    """What a design takes of a kind of limit."""
    if kind in ("stored", "active"):
        return row["parameters" if kind == "stored" else "active_parameters"]
    metric, _, device = kind.partition(" ")
    problem = problems[device or "rtx_4090"]
    return float(problem.assess(problem.headed(architecture(table, row)))[metric][0])


def sets_of(rows: list[Row]) -> list[list[Row]]:
    """Designs of equal tokens; the three tables name theirs exactly equal, or all one number."""
    by_tokens = defaultdict(list)
    for row in rows:
        by_tokens[row["group"], row["tokens"]].append(row)
    sets = []
    for own in by_tokens.values():
        designs = defaultdict(list)
        for row in own:
            designs[tuple(value for name, value in row.items() if name != "loss")].append(row)
        merged = [{**same[0], "loss": fmean(row["loss"] for row in same)} for same in designs.values()]
        if len(merged) >= 4:
            sets.append(merged)
    return sets


def picks(fits: list[Row], law: Any) -> dict[str, list[Row]]:
    """Each rule's pick among what fits, with those that tie."""

    def most(name: str, rows: list[Row], share: float) -> list[Row]:
        top = max(row[name] for row in rows)
        return [row for row in rows if row[name] >= (1 - share) * top]

    def least(values: list[float]) -> list[Row]:
        return [row for row, value in zip(fits, values, strict=True) if value <= min(values) + 1e-9]

    columns = []
    for draw in law.drawn:
        losses = [loss_by(draw.coefficients, row) for row in fits]
        columns.append([loss - min(losses) for loss in losses])
    cut = int(0.05 * len(columns))
    lost = [fmean(sorted(own)[cut : len(columns) - cut]) for own in zip(*columns, strict=True)]
    return {
        "evidence": least([loss_by(law.coefficients, row) for row in fits]),
        "evidence, least regret": least(lost),
        "most active": most("active_parameters", fits, 0.001),
        "most active, then stored": most("parameters", most("active_parameters", fits, 0.01), 0.001),
        "most parameters": most("parameters", fits, 0.001),
        "random": fits,
    }


def checked(table: str, stated: list[dict[str, str]], problems: dict[str, Any]) -> tuple[int, int, float]:
    """Choices made here, those that the study has too, and the largest difference of a regret, nats."""
    file, laboratory = TABLES[table]
    with (SOURCES / file).open(encoding="utf-8") as lines:
        rows = [{name: float(cell) for name, cell in row.items()} for row in csv.DictReader(lines)]
    law, made, known, worst = law_without(laboratory), 0, 0, 0.0
    theirs = defaultdict(list)
    for each in stated:
        if each["table"] == table and each["equal"] == "tokens":
            theirs[each["limit"], each["fit"]].append(each)
    for own in sets_of(rows):
        for kind in dict.fromkeys(limit for limit, _ in theirs):
            values = [quantity(table, row, kind, problems) for row in own]
            seen = set()
            for place in range(5):
                k = round(2 + place * (len(own) - 3) / 4)
                top = sorted(values)[k - 1] * (1 + 1e-9)
                fits = [row for row, value in zip(own, values, strict=True) if value <= top]
                if len(fits) == len(own) or len(fits) in seen:
                    continue
                seen.add(len(fits))
                best = min(row["loss"] for row in fits)
                regret = {rule: fmean(row["loss"] for row in own) - best for rule, own in picks(fits, law).items()}
                off = [
                    max(abs(float(each[rule]) - regret[rule]) for rule in CHECKED)
                    for each in theirs[kind, str(len(fits))]
                ]
                made, known, worst = made + 1, known + bool(off), max(worst, min(off, default=math.inf))
    return made, known, worst


def main() -> None:
    """Print one line a table."""
    with Path(sys.argv[1]).open(encoding="utf-8") as lines:
        stated = list(csv.DictReader(lines))
    devices = {each["limit"].partition(" ")[2] for each in stated} - {""}
    asked = {"preset": "device", "precision": "int8", "input_tokens": 1024, "output_tokens": 16, "baselines": []}
    problems = {device: assemble({**asked, "device": device}, {}).problem for device in devices}
    failed = False
    for table in TABLES:
        made, known, worst = checked(table, stated, problems)
        theirs = sum(each["table"] == table and each["equal"] == "tokens" for each in stated)
        failed |= not made == known == theirs or worst > 2e-6
        print(f"{table}: {made} choices here, {theirs} there, regrets differ by at most {worst:.1e} nats", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
