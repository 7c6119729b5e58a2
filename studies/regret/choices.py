"""Choices among trained models: sets of designs that may be compared, what each design takes, and limits on that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from plas_evidence.judging import EQUAL, EQUAL_FLOPS
from plas_evidence.tables import GroupedTable

from nas.problem.problem import Problem
from nas.search.assembly import assemble
from objectives.counts import count
from objectives.dimensions import Dimensions
from plas_fit.evidence.joint_form import MOST_EPOCHS
from plas_fit.fitting.trained_models import Table
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

LEAST_DESIGNS, MOST_LIMITS = 4, 5
DEVICES = ("raspberry_pi_5", "jetson_orin_nano_super_8gb", "snapdragon_8_elite", "jetson_agx_orin_64gb", "rtx_4090")
TIMES = ("tpot_ms", "total_ms")
SHAPE = ("depth", "width", "query_dim", "kv_dim", "expert_ffn_ratio", "ffn_ratio", "n_experts", "top_k")
DESIGN = (*SHAPE, "head_dim", "parameters", "active_parameters")
HEADS = (64, 48, 32, 16, 8, 4, 2, 1)
OFF = 0.1  # by which counts of parameters may differ from the table's, a share


@dataclass(frozen=True, eq=False)
class Candidates:
    """Designs of one table that may be compared: a row of the table for each, (n,), and its loss, nats per token, (n,).

    equal_compute: trained on equal FLOPs, else on equal tokens. inside: the law evidence is fitted to rows like all of them.
    most_tokens: the most that one of them was trained on.
    """

    rows: IntArray
    loss: FloatArray
    equal_compute: bool
    inside: bool
    most_tokens: float


def read_as_new(source: GroupedTable) -> GroupedTable:
    """The rows of a table that read their text at most as often as counts as new."""
    if source.epochs is None:
        return source
    keep = np.flatnonzero(source.epochs <= MOST_EPOCHS)
    return replace(source, table=source.table[keep], group=source.group[keep], epochs=source.epochs[keep])


def sets_of(source: GroupedTable) -> list[Candidates]:
    """The sets of a table, those of equal tokens first."""
    table = source.table
    if not (table.has("tokens") and table.has("active_parameters")):
        return []
    tokens = np.log(table.feature("tokens"))
    flops = tokens + np.log(table.feature("active_parameters"))
    designs = np.stack([table.feature(name) for name in DESIGN if table.has(name)])
    equal_tokens = [_set(source, rows, designs, equal_compute=False) for rows in _alike(source, tokens, EQUAL)]
    with_tokens = np.vstack([designs, table.feature("tokens")])
    equal_compute = [
        _set(source, rows, with_tokens, equal_compute=True)
        for rows in _alike(source, flops, EQUAL_FLOPS)
        if np.ptp(tokens[rows]) > EQUAL
    ]
    return [
        each
        for each in (*equal_tokens, *equal_compute)
        if len(np.unique(designs[:, each.rows], axis=1).T) >= LEAST_DESIGNS
    ]


def _alike(source: GroupedTable, logarithm: FloatArray, most: float) -> Iterator[IntArray]:
    """The rows of each group, cut where they exceed the least of a set by more than `most`."""
    for group in np.unique(source.group):
        rest = np.flatnonzero(source.group == group)
        rest = rest[np.argsort(logarithm[rest], kind="stable")]
        while len(rest):
            within = logarithm[rest] <= logarithm[rest[0]] + most
            yield np.sort(rest[within])
            rest = rest[~within]


def _set(source: GroupedTable, rows: IntArray, designs: FloatArray, *, equal_compute: bool) -> Candidates:
    """Rows as candidates; those of one design are one of their mean loss."""
    trainings = source.trainings
    _, first, which = np.unique(designs[:, rows], axis=1, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    loss = np.bincount(which, trainings.loss[rows]) / np.bincount(which)
    order = np.argsort(first)
    inside = bool(trainings.fitted[rows].all())
    most = float(source.table.feature("tokens")[rows].max())
    return Candidates(rows[first[order]], loss[order] / trainings.per, equal_compute, inside, most)


def limits_of(values: FloatArray) -> list[BoolArray]:
    """Which designs fit within each of up to five limits on a quantity (n,): two or more, but not all."""
    ordered, masks = np.sort(values), dict[bytes, BoolArray]()
    for k in np.unique(np.rint(np.linspace(2, len(values) - 1, MOST_LIMITS)).astype(int)):
        fits = values <= ordered[k - 1] * (1.0 + 1e-9)
        if not fits.all():
            masks[fits.tobytes()] = fits
    return [*masks.values()]


def taken(table: Table) -> dict[str, dict[str, FloatArray]]:
    """What each row takes, (n,), by family and kind of limit; memory and time where the table says shapes."""
    sizes = {"stored": table.feature("parameters"), "active": table.feature("active_parameters")}
    architectures = architectures_of(table)
    if architectures is None:
        return {"parameters": sizes}
    times: dict[str, FloatArray] = {}
    for device in DEVICES:
        problem = _problem(device)
        assessment = problem.assess(problem.headed(architectures))
        times |= {f"{metric} {device}": assessment[metric] for metric in TIMES}
    return {"parameters": sizes, "memory": {"resident_gb": assessment["resident_gb"]}, "time": times}


@cache
def _problem(device: str) -> Problem:
    """Serving on a device in preset `device`, int8, a prompt of 1,024 tokens and 16 more."""
    asked = {"preset": "device", "device": device, "precision": "int8", "input_tokens": 1024, "output_tokens": 16}
    return assemble({**asked, "baselines": []}, {}).problem


def architectures_of(table: Table) -> Architectures | None:
    """The rows as architectures, in the first reading of their FFNs that gives the stored parameters; None without any."""
    if not all(map(table.has, SHAPE)):
        return None
    for ungated, half_dense in ((False, False), (True, False), (True, True)):
        columns = _columns(table, ungated=ungated, half_dense=half_dense)
        architectures = Architectures.from_columns({name: np.rint(v).astype(int) for name, v in columns.items()})
        stored = count(architectures, Dimensions(architectures)).total
        if (np.abs(stored / table.feature("parameters") - 1.0) <= OFF).all():
            return architectures
    return None


def _columns(table: Table, *, ungated: bool, half_dense: bool) -> Mapping[str, FloatArray]:
    """Columns of the rows as architectures; `half_dense`: experts are in every other layer."""
    depth, width, query, kv, ratio, whole, experts, top_k = (table.feature(name) for name in SHAPE)
    head = table.feature("head_dim") if table.has("head_dim") else _head_size(query, kv)
    routed = experts > 1
    dense_layers = np.where(routed & half_dense, depth // 2, 0)
    shared = np.zeros(len(table)) if half_dense else np.where(routed, (whole - top_k * ratio) * width, 0.0)
    return {
        "depth": depth,
        "width": width,
        "head_dim": head,
        "n_heads": np.maximum(query / head, 1.0),
        "n_kv_heads": np.maximum(kv / head, 1.0),
        "n_experts": experts,
        "top_k": top_k,
        "expert_size": np.where(routed, ratio, whole) * width,
        "shared_expert_size": np.maximum(shared, 0.0),
        "ungated_ffn": np.full(len(table), float(ungated)),
        "n_dense": dense_layers,
        "dense_size": np.where(dense_layers > 0, ratio * width, 0.0),
    }


def _head_size(query: FloatArray, kv: FloatArray) -> FloatArray:
    """The largest usual head size that divides both widths, (n,)."""
    fits = np.array([(query % size == 0) & (kv % size == 0) for size in HEADS])
    sizes: FloatArray = np.array(HEADS, dtype=np.float64)[fits.argmax(axis=0)]
    return sizes
