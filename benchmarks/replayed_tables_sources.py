"""Tables that somebody paid for, as cases to search: trained losses, measured times, and the formulas that come close."""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from replayed_tables_space import TableSpace

from nas.problem.objective import Objective, built_in
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures, architectures_of
from search_spaces.arrays import FloatArray

OWN = Path(__file__).parent.parent / "docs" / "data" / "trained.csv"
CPU = {"precision": "fp32", "calibration": "none"}
BASE = {"baselines": [], "applications": {}, "default_budget": "none"}
HEAD = 16  # dimensions of a head where a table names none: its layers attend with as many as they are wide


@dataclass(frozen=True, eq=False)
class Case:
    """A table: a problem over its rows, the metric whose regret counts, the one that has limits; values by name, (n,), in key order."""

    name: str
    problem: Problem
    least: str
    limited: str
    values: Mapping[str, FloatArray]
    rivals: tuple[Law, ...] = ()

    @property
    def unit(self) -> str:
        """Of the regret."""
        return "ms" if self.least.endswith("_ms") else "nats"


def cases(folder: Path | None) -> Iterator[Case]:
    """Every table: the project's own, and those of a folder of public data where it is given."""
    yield own()
    if folder is None:
        return
    for board, device in (("xeon", "x86_desktop_generic"), ("raspberrypi", "raspberry_pi_5")):
        yield translators(folder / "latency" / f"wmt14ende_cpu_{board}_all.csv", board, device)
    yield trained(folder / "loss" / "gemstones_hot.csv", "gemstones", "final_loss")
    yield trained(folder / "loss" / "morph.csv", "morph", "loss")


def rows_of(path: Path) -> list[dict[str, str]]:
    """A table's rows."""
    with path.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def own() -> Case:
    """The project's own trainings at 307,200 bytes, with times measured on a processor; seeds of one architecture are averaged."""
    rows = [row for row in rows_of(OWN) if row["status"] == "ok" and row["tokens"] == "307200" and row["loss"]]
    shape = ("depth", "width", "head_dim", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size")
    designs = [{name: int(row[name]) for name in shape} for row in rows]
    values = {name: np.array([float(row[name]) for row in rows]) for name in ("loss", "total_ms")}
    genes = ("depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads")
    study = {"device": "x86_desktop_generic", **CPU, "input_tokens": 256, "output_tokens": 16, "vocabulary": 257}
    return _case("own", designs, genes, values, study | {"objectives": ["loss", "total_ms"]}, ("loss", "total_ms"))


def translators(path: Path, board: str, device: str) -> Case:
    """Decoders of translation models: layers, width and mean FFN; times of other parts and of heads are noise to all."""
    rows = rows_of(path)
    designs = [_decoder(row) for row in rows]
    values = {"decode_ms": np.array([float(row["latency_mean_decoder"]) for row in rows])}
    study = {"device": device, **CPU, "input_tokens": 30, "output_tokens": 30, "objectives": ["decode_ms", "loss"]}
    genes = ("depth", "width", "expert_size")
    return _case(f"translators on {board}", designs, genes, values, study, ("decode_ms", "loss"))


def _decoder(row: Mapping[str, str]) -> dict[str, int]:
    ffn = round(float(row["decoder_ffn_embed_dim_avg"]))
    heads = {"head_dim": 64, "n_heads": 8, "n_kv_heads": 8, "n_experts": 1, "top_k": 1}
    return {"depth": int(row["decoder_layer_num"]), "width": int(row["decoder_embed_dim"]), "expert_size": ffn, **heads}


def trained(path: Path, name: str, column: str) -> Case:
    """Dense models of given depth and width, each at several numbers of tokens: loss over the FLOPs of the training."""
    rows = rows_of(path)
    designs = [_dense(int(row["depth"]), int(row["width"])) | {"tokens": int(row["tokens"])} for row in rows]
    values = {"loss": np.array([float(row[column]) for row in rows])}
    study = {"law": "chinchilla_epoch", "objectives": ["loss", "train_flops"]}
    found = _case(name, designs, ("depth", "width", "tokens"), values, study, ("loss", "train_flops"))
    return replace(found, rivals=(load_law("hw_codesign"),))


def _dense(depth: int, width: int) -> dict[str, int]:
    heads = width // HEAD
    shape = {"depth": depth, "width": width, "head_dim": HEAD, "n_heads": heads, "n_kv_heads": heads}
    return shape | {"n_experts": 1, "top_k": 1, "expert_size": 4 * width}


def _case(
    name: str,
    designs: list[dict[str, int]],
    genes: tuple[str, ...],
    measured: Mapping[str, FloatArray],
    study: dict[str, Any],
    pair: tuple[str, str],
) -> Case:
    """A case of rows: designs that are alike are one, with the mean of what was measured."""
    every = architectures_of(designs)
    keys = np.stack([getattr(every, gene) for gene in genes], axis=1)
    _, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    space = TableSpace(name, every[first], tuple(gene for gene in genes if len(np.unique(getattr(every, gene))) > 1))
    means = {
        metric: np.bincount(place.ravel(), column) / np.bincount(place.ravel()) for metric, column in measured.items()
    }
    ordered = {metric: column[_order(space, every[first])] for metric, column in means.items()}
    problem = _problem(space, ordered, study)
    known = problem.evaluate(space.genotypes(np.arange(space.size))).metrics
    values = {_named(problem, metric): known[_named(problem, metric)] for metric in pair}
    least, limited = (_named(problem, metric) for metric in pair)
    return Case(name, problem, least, limited, values)


def _order(space: TableSpace, architectures: Architectures) -> Any:
    """For each row of the space, its place among architectures."""
    return np.argsort(space.find(architectures))


def _named(problem: Problem, metric: str) -> str:
    return next((f.name for f in problem.functions if f.prior == metric), metric)


def _problem(space: TableSpace, measured: Mapping[str, FloatArray], study: dict[str, Any]) -> Problem:
    """The study over a table's rows, with what was measured in the place of the formulas, which are its priors."""
    base = assemble({**BASE, **study}, {}).problem

    def looked_up(column: FloatArray) -> Callable[[Architectures], FloatArray]:
        return lambda architectures: column[space.find(architectures)]

    own_ones = {}
    for name, column in measured.items():
        shipped = built_in(name)
        own_ones[name] = Objective(f"table:{name}", shipped.unit, shipped.log_scale, looked_up(column), prior=name)
    objectives = tuple(own_ones.get(objective.name, objective) for objective in base.objectives)
    changed: Any = space
    return replace(base, space=changed, objectives=objectives, functions=tuple(own_ones.values()))
