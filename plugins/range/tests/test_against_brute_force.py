"""Picks, frontiers, binding limits, transfers and the design for all, against every architecture of every case evaluated alone."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

from nas.exact import solution
from nas.problem.evaluations import Evaluations
from nas.search.assembly import assemble
from nas.study.baselines import baseline
from objectives.metrics.perplexity import perplexity_percent
from plas_range.result import DeviceStudy, spread
from plas_range.transfer import optima

DEVICES = ("raspberry_pi_5", "jetson_agx_orin_64gb@15w", "rtx_4090", "jetson_agx_thor", "h100_sxm", "m4_10c")
WORKLOADS = ((1, 1024, 16), (8, 256, 32), (1, 8192, 256))


@dataclass(frozen=True, eq=False)
class Alone:
    """One case by itself: everything evaluated, and which rows are within the study's budgets and within all limits."""

    found: Evaluations
    allowed: Any
    fitting: Any
    limits: dict[str, float]
    asked: str


def alone(device: str, precision: str, workload: tuple[int, int, int], application: Any, **raw: Any) -> Alone:
    """A case through the ordinary study, with a limit of an application or of Qwen2.5-0.5B's time besides."""
    batch, read, written = workload
    study = assemble(
        {
            "preset": "paper",
            **raw,
            "device": device,
            "precision": precision,
            "batch": batch,
            "input_tokens": read,
            "output_tokens": written,
            "algo": "random",
            "baselines": [],
            "applications": {},
        },
        {},
    )
    problem = study.problem
    found = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    if application is None:
        qwen = problem.headed(baseline("qwen2.5_0.5b").architecture)
        metric, limit = "total_ms", float(problem.assess(qwen)["total_ms"][0])
    else:
        metric, limit = application
    limits = {**{b.metric: b.limit for b in problem.budgets}, metric: limit}
    allowed = np.all([found.metrics[b.metric] <= b.limit for b in problem.budgets], axis=0)
    return Alone(found, allowed, allowed & (found.metrics[metric] <= limit), limits, metric)


def twelve(values: Any) -> Any:
    """Values to 12 digits, the slow way."""
    return np.array([float(f"{value:.11e}") for value in np.atleast_1d(values)])


def best(case: Alone, rows: Any) -> int | None:
    """The row of lowest loss among some; ties to the lower limited metric, the lower total_ms, the smaller key."""
    if not rows.any():
        return None
    m = case.found.metrics
    some = np.flatnonzero(rows)
    keys = zip(twelve(m["loss"][some]), twelve(m[case.asked][some]), twelve(m["total_ms"][some]), some, strict=True)
    return int(min(keys)[-1])


def frontier(case: Alone) -> list[int]:
    """Rows within the study's budgets that none dominates in loss and total_ms, ties kept."""
    some = np.flatnonzero(case.allowed)
    points = {
        row: (t, loss)
        for row, t, loss in zip(
            some.tolist(),
            twelve(case.found.metrics["total_ms"][some]),
            twelve(case.found.metrics["loss"][some]),
            strict=True,
        )
    }
    kept, lowest = [], np.inf
    for value in sorted(set(points.values())):
        if value[1] < lowest:
            kept.append(value)
            lowest = value[1]
    return [row for row in points if points[row] in set(kept)]


def check(study: DeviceStudy, cases: list[Alone]) -> None:
    """Everything that a study says, against the cases alone."""
    picks = [best(case, case.fitting) for case in cases]
    for answer, case, pick in zip(study.rows, cases, picks, strict=True):
        assert {b.metric: b.limit for b in answer.case.budgets} == pytest.approx(case.limits, rel=1e-12)
        assert (None if answer.pick is None else int(answer.pick.keys[0])) == pick
        assert sorted(answer.frontier.keys.tolist()) == frontier(case)
        if pick is not None:
            check_binding(answer, case, pick)
        else:
            assert answer.diagnosis is not None
    check_transfer(study, cases, picks)
    check_universal(study, cases, picks)


def check_binding(answer: Any, case: Alone, pick: int) -> None:
    """A limit binds where leaving it out alone lowers the loss."""
    loss = case.found.metrics["loss"]
    for metric in case.limits:
        rest = np.all(
            [case.found.metrics[m] <= limit for m, limit in case.limits.items() if m != metric]
            or [case.allowed | True],
            axis=0,
        )
        assert answer.without[metric] == pytest.approx(loss[rest].min(), rel=1e-12)
        assert (metric in answer.binding) == (twelve(loss[rest].min())[0] < twelve(loss[pick])[0])


def check_transfer(study: DeviceStudy, cases: list[Alone], picks: list[int | None]) -> None:
    """Every pick in every case, every frontier in every case."""
    t, fronts = study.transfer, [frontier(case) for case in cases]
    for (row, a), (column, there) in product(enumerate(picks), enumerate(cases)):
        m = there.found.metrics
        if a is None:
            assert np.isnan(t.violation[row, column])
            continue
        over = {metric: m[metric][a] / limit - 1 for metric, limit in there.limits.items()}
        assert t.violation[row, column] == pytest.approx(max(over.values()), rel=1e-9, abs=1e-12)
        missed = study.rows[column].case.budgets[int(t.missed[row, column])].metric
        assert over[missed] == pytest.approx(max(over.values()), rel=1e-9, abs=1e-12)
        b = picks[column]
        lost = np.nan if b is None else m["loss"][a] - m["loss"][b]
        assert t.regret[row, column] == pytest.approx(lost, abs=1e-12, nan_ok=True)
        if b is not None and there.fitting[a]:
            assert t.regret[row, column] >= -1e-12
        behind = {x: equal(there, x) for x in {a, *fronts[row]} if there.allowed[x]}
        assert t.at_equal_cost[row, column] == pytest.approx(behind.get(a, np.nan), abs=1e-12, nan_ok=True)
        if fronts[row]:
            assert t.shared[row, column] == pytest.approx(len({*fronts[row]} & {*fronts[column]}) / len(fronts[row]))
            inside = [behind[x] for x in fronts[row] if x in behind] or [np.nan]
            assert t.mean[row, column] == pytest.approx(np.mean(inside), abs=1e-12, nan_ok=True)
            assert t.worst[row, column] == pytest.approx(max(inside), abs=1e-12, nan_ok=True)


def equal(there: Alone, row: int) -> float:
    """What a design loses against the best allowed one that takes no longer there."""
    m = there.found.metrics
    return float(m["loss"][row] - m["loss"][there.allowed & (m["total_ms"] <= m["total_ms"][row])].min())


def check_universal(study: DeviceStudy, cases: list[Alone], picks: list[int | None]) -> None:
    """The design of least worst regret over every architecture; where none fits everywhere, of most cases."""
    answered = [i for i, pick in enumerate(picks) if pick is not None]
    if not answered:
        assert study.universal is None
        return
    assert study.universal is not None
    loss = cases[0].found.metrics["loss"]
    fits = np.sum([cases[i].fitting for i in answered], axis=0)
    worst = np.full(len(loss), np.inf)
    for row in np.flatnonzero(fits == fits.max()):
        worst[row] = max(loss[row] - loss[picks[i]] for i in answered if cases[i].fitting[row])
    assert study.universal.fits == fits.max()
    assert study.universal.exact
    assert fits[study.universal.key] == fits.max()
    assert loss[study.universal.key] == pytest.approx(loss[fits == fits.max()].min(), rel=1e-12)
    if fits.max() == len(answered):
        assert study.universal.worst == pytest.approx(worst.min(), abs=1e-12)
    else:
        assert not study.universal.for_all


@pytest.mark.slow
@pytest.mark.parametrize(("precisions", "workload"), [(("fp16", "int8"), (1, 1024, 16)), (("int4",), (8, 256, 32))])
def test_the_papers_space_as_fast_as_a_model(
    precisions: tuple[str, ...], workload: tuple[int, int, int], solved: Callable[..., DeviceStudy]
) -> None:
    study = solved(
        flags={"preset": "paper"},
        devices=list(DEVICES),
        precisions=list(precisions),
        workloads=["/".join(map(str, workload))],
    )
    order = list(product(DEVICES, precisions))
    assert [answer.case.named for answer in study.rows] == [device for device, _ in order]
    check(study, [alone(device, precision, workload, None) for device, precision in order])


@pytest.mark.slow
def test_applications_of_which_some_are_out_of_reach(solved: Callable[..., DeviceStudy]) -> None:
    study = solved(flags={"preset": "paper"}, devices=list(DEVICES), applications="autonomous driving,private serving")
    limits = {"autonomous driving": ("total_ms", 100.0), "private serving": ("total_ms", 2000.0)}
    order = list(product(DEVICES, limits))
    check(study, [alone(device, "fp16", (1, 1024, 16), limits[name]) for device, name in order])
    assert study.rows[0].pick is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_devices_formats_and_limits(
    seed: int, tiny: dict[str, Any], solved: Callable[..., DeviceStudy], tmp_path: Any
) -> None:
    rng = np.random.default_rng(seed)
    wanted = []
    for i in range(6):
        device, precision = str(rng.choice(DEVICES)), str(rng.choice(["fp16", "int8", "int4"]))
        workload = WORKLOADS[rng.integers(len(WORKLOADS))]
        found = alone(device, precision, workload, None, space=deepcopy(tiny)).found.metrics
        limit = float(
            np.quantile(found["decode_ms"], rng.uniform(0.0, 0.9))
            if rng.random() > 0.2
            else found["decode_ms"].min() / 2
        )
        wanted.append((f"case {i}", device, precision, workload, limit))
    lines = [
        f"{label},{device},{precision},{b},{read},{out},decode_ms={limit!r}"
        for label, device, precision, (b, read, out), limit in wanted
    ]
    table = tmp_path / "cases.csv"
    table.write_text("\n".join(["case,device,precision,batch,input_tokens,output_tokens,budget", *lines]))
    study = solved(table=table, flags={"preset": "paper", "space": deepcopy(tiny)})
    cases = [
        alone(device, precision, workload, ("decode_ms", limit), space=deepcopy(tiny), budgets={"decode_ms": limit})
        for _, device, precision, workload, limit in wanted
    ]
    check(study, cases)


def test_a_large_space_is_solved_by_parts_to_the_same(
    monkeypatch: pytest.MonkeyPatch, solved: Callable[..., DeviceStudy]
) -> None:
    whole = solved(
        flags={"preset": "paper"}, devices=["raspberry_pi_5", "l4"], applications="smart home,private serving"
    )
    for module in ("plas_range.answers", "nas.exact.solution"):
        monkeypatch.setattr(f"{module}.SMALL", 100)
    parts = solved(
        flags={"preset": "paper"}, devices=["raspberry_pi_5", "l4"], applications="smart home,private serving"
    )
    assert parts.answers.fits is None
    assert "as by run --algo exact" in parts.answers.proof
    for one, two in zip(whole.rows, parts.rows, strict=True):
        assert (one.pick is None) == (two.pick is None)
        assert one.frontier.keys.tolist() == two.frontier.keys.tolist()
        if one.pick is not None and two.pick is not None:
            assert one.pick.keys.tolist() == two.pick.keys.tolist()
            assert one.binding == two.binding
    for name in ("regret", "violation", "at_equal_cost", "shared", "mean", "worst"):
        np.testing.assert_allclose(getattr(one_of(parts), name), getattr(one_of(whole), name), atol=1e-12)
    assert parts.universal is not None
    assert not parts.universal.exact
    assert solution.SMALL == 100


def one_of(study: DeviceStudy) -> Any:
    """The transfers of a study."""
    return study.transfer


def test_distinct_optima_are_counted_once(solved: Callable[..., DeviceStudy]) -> None:
    study = solved(flags={"preset": "paper"}, devices=list(DEVICES))
    keys = [int(answer.pick.keys[0]) for answer in study.rows if answer.pick is not None]
    found = optima(study.rows)
    assert len(found) == len(set(keys)) == spread(study)["optima"]
    assert sorted(case for optimum in found for case in optimum.cases) == list(range(len(keys)))
    assert [len(optimum.cases) for optimum in found] == sorted((keys.count(key) for key in set(keys)), reverse=True)
    assert perplexity_percent(np.log(1.5)) == pytest.approx(50.0)
