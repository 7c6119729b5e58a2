"""Answers under preset device that a practitioner would believe: inside of what was trained, and nothing left out of a model for free."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from nas.answer.outcome import Outcome
from nas.answer.plot_data import beyond_evidence
from nas.answer.three_sentences import nothing_fits
from nas.exact.infeasibility import diagnosed
from nas.exact.solution import pick_of
from nas.problem.breakdown import steps_from
from nas.problem.diagnosis import lines
from nas.problem.evaluations import Evaluations
from nas.problem.law_caveats import leaves
from nas.problem.objective import EXTRAPOLATION
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from nas.study.layers import layered, over
from objectives.loss_law.coverage import logs_of
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import IntArray

Concluded = Callable[..., Outcome]
DEVICES = ("raspberry_pi_5", "jetson_orin_nano_super_8gb", "rtx_4090", "a19_pro")
MORE_DEVICES = ("jetson_agx_orin_64gb", "rk3588_npu", "m4_10c", "hailo_10h", "jetson_orin_nx_16gb", "rtx_3070")
BUDGETS: tuple[list[str], ...] = (
    ["tpot_ms=100", "resident_gb=0.5"],
    ["total_ms=500", "resident_gb=2"],
    ["tpot_ms=20"],
    ["resident_gb=6"],
    ["total_ms=3000", "resident_gb=1"],
)
SPACES, LARGE = ("paper", "drafts", "fine"), ("huge", "heads", "edge2026")
SMALLER = (
    "depth",
    "ffn",
    "n_experts",
    "n_heads",
    "n_kv_heads",
    "head_dim",
)  # axes on which less of a model must not look better


def problem_of(space: str, device: str, budgets: list[str], **keys: Any) -> Problem:
    flags = {
        "algo": "exact",
        "preset": "device",
        "space": space,
        "device": device,
        "precision": "int4",
        "budgets": budgets,
    }
    return assemble(*layered({**flags, **keys}, [], None)).problem


@cache
def evidence() -> Law:
    return load_law("evidence")


def along(problem: Problem, genotype: IntArray) -> Iterator[tuple[str, IntArray]]:
    """Each axis with the designs that differ in it alone, its lowest value first, (n, g)."""
    space = problem.space
    for gene, axis in enumerate(space.genes):
        moved = np.repeat(genotype[None], space.gene_sizes[gene], axis=0)
        moved[:, gene] = np.arange(space.gene_sizes[gene])
        moved = space.repair(moved)
        alone = (np.delete(moved, gene, axis=1) == np.delete(genotype, gene)).all(axis=1)
        yield axis, moved[alone]


def no_smaller_looks_better(problem: Problem, answer: Evaluations) -> list[str]:
    """Axes of the answer along which some smaller design inside has a lower loss than a larger one."""
    found, law = [], problem.scenario.law
    alike = law.model_copy(
        update={"layer_deltas": {}, "layer_delta_draws": {}}
    )  # at another depth other shares of kinds
    for axis, rows in along(problem, answer.genotypes[0]):
        designs = problem.architectures(rows)
        losses = alike.loss(designs)[law.extrapolation(designs) <= 1.0]
        sparse = (designs.n_experts > 1)[law.extrapolation(designs) <= 1.0]
        for kind in (True, False) if axis == "n_experts" else (None,):  # dense and sparse are two kinds of model
            each = losses if kind is None else losses[sparse == kind]
            if axis in SMALLER and (np.diff(each) > 1e-9).any():
                found.append(f"{axis} of {leaves(law, designs) or 'the answer'}: {np.diff(each).max():.2g} nats")
    return found


CASES = [*product(DEVICES, SPACES), *product(DEVICES[1:2], ("huge", "edge2026"))]
EVERY = [*product((*DEVICES, *MORE_DEVICES), (*SPACES, *LARGE))]


@pytest.mark.parametrize(
    ("device", "space"),
    [pytest.param(*case, marks=pytest.mark.slow if case in CASES else pytest.mark.extended) for case in EVERY],
)
def test_the_answer_is_inside_and_no_smaller_model_looks_better(device: str, space: str) -> None:
    for budgets in BUDGETS:
        problem = problem_of(space, device, budgets)
        answer = pick_of(problem, PickRule(None))
        if answer is None:
            continue
        design = problem.architectures(answer.genotypes)
        assert leaves(problem.scenario.law, design) == []
        assert float(problem.evaluate(answer.genotypes, (EXTRAPOLATION,)).metrics[EXTRAPOLATION][0]) == 1.0
        assert no_smaller_looks_better(problem, answer) == []


def without(**changed: int) -> Architectures:
    """A usual dense model of half a billion parameters with some of its columns changed."""
    usual = {"depth": 24, "width": 1024, "head_dim": 64, "n_heads": 16, "n_kv_heads": 16, "n_experts": 1, "top_k": 1}
    columns = {**usual, "expert_size": 3072, **changed}
    return Architectures.from_columns({name: np.array([value]) for name, value in columns.items()})


def test_a_usual_model_is_inside() -> None:
    assert not evidence().outside(without())


@pytest.mark.parametrize(
    ("what", "changed", "left", "said"),
    [
        ("FFN", {"expert_size": 32}, "rows", "FFN ratio each 0.0312 (nearest trained: 2.67)"),
        (
            "attention heads",
            {"n_heads": 1, "n_kv_heads": 1},
            "query_ratio",
            "query dimension per width 0.0625 (trained: 0.5 to 2.67)",
        ),
    ],
)
def test_a_model_without_it_is_neither_better_nor_inside(
    what: str, changed: dict[str, int], left: str, said: str
) -> None:
    law, less = evidence(), without(**changed)
    assert law.loss(less)[0] > law.loss(without())[0], what
    assert left in law.outside(less)
    assert law.extrapolation(less)[0] > 1.0
    assert said in leaves(law, less)


def test_depth_ends_at_a_third_of_the_least_that_several_trainings_have() -> None:
    """Models of 3 layers were trained, none of fewer: one layer is no better, covered by three of those within a factor 3, outside where two are."""
    law, one = evidence(), without(depth=1)
    assert law.loss(one)[0] > law.loss(without(depth=2))[0] > law.loss(without())[0]
    region = law.covers["dense"]
    own = np.log([law.feature(one, name)[0] for name in region.axes])
    apart = np.abs(logs_of(region.rows) - own).max(axis=1)
    assert np.exp(logs_of(region.rows)[:, region.axes.index("depth")]).min() == pytest.approx(3.0)
    assert apart.min() > np.log(2.0)
    assert ("rows" in law.outside(one)) == ((apart <= np.log(3.0) + 1e-9).sum() < 3)
    wide = without(depth=1, width=4096, n_heads=64, n_kv_heads=64, expert_size=12288)
    assert law.extrapolates(wide)[0]
    assert any(each.startswith("layers 1 (nearest trained: ") for each in leaves(law, wide))


def test_only_the_axes_are_named_on_which_the_nearest_training_is_far() -> None:
    """Of trainings that are equally far on one axis the nearest is the one that is near on the others."""
    named = [each.split(" (")[0] for each in leaves(evidence(), without(expert_size=32)) if "nearest trained" in each]
    assert named == ["FFN ratio each 0.0312"]


def test_a_dense_model_has_no_granularity() -> None:
    """A smaller FFN is a smaller model: at hidden sizes of 32, 128 and 512 the loss falls as the FFN grows."""
    sizes = [32, 128, 512, 2048, 4096]
    losses = [float(evidence().loss(without(expert_size=size))[0]) for size in sizes]
    assert losses == sorted(losses, reverse=True)


def test_experts_nobody_trained_are_outside() -> None:
    law = evidence()
    many = without(depth=12, n_experts=2048, top_k=1)
    assert law.extrapolates(many)[0]
    assert "experts 2,048 (nearest trained: 512)" in leaves(law, many)
    corner = without(depth=12, n_experts=4, top_k=1, expert_size=512)
    assert law.extrapolation(corner)[0] > 1.0
    (said,) = leaves(law, corner)
    assert said.startswith("FFN ratio 0.5 (usual with experts: ")


def test_a_model_without_a_vocabulary_is_marked() -> None:
    problem = problem_of("paper", "raspberry_pi_5", ["resident_gb=2"], vocabulary=["1024", "32k"], input_text="10kB")
    designs = problem.architectures(problem.space.sample(64, np.random.default_rng(0)))
    tiny = designs.vocabulary == 1024
    assert tiny.any()
    assert (problem.scenario.law.extrapolation(designs)[tiny] > 1.0).all()
    answer = pick_of(problem, PickRule(None))
    assert answer is None or problem.architectures(answer.genotypes).vocabulary[0] > 1024


@pytest.mark.slow
def test_what_does_not_fit_inside_names_the_nearest_outside_and_by_what_it_leaves() -> None:
    problem = problem_of("fine", "raspberry_pi_5", ["resident_gb=0.165"])
    assert pick_of(problem, PickRule(None)) is None
    diagnosis = diagnosed(problem, problem.evaluate(problem.space.genotypes(np.zeros(0, dtype=np.int64))))
    nearest = diagnosis.outside
    assert nearest is not None
    assert nearest.metrics["resident_gb"][0] <= 0.165
    said = nothing_fits(problem, diagnosis, whole=True)
    assert said is not None
    assert "No design to recommend" in said.train
    assert "it leaves by" in said.takes
    assert re.search(r"\((nearest trained|trained|usual)( with experts)?: ", said.takes)


def test_every_design_may_be_recommended_where_the_study_allows_it() -> None:
    inside = problem_of("fine", "raspberry_pi_5", ["resident_gb=0.5"])
    anywhere = problem_of("fine", "raspberry_pi_5", ["resident_gb=0.5"], outside="allow")
    answers = [pick_of(problem, PickRule(None)) for problem in (inside, anywhere)]
    best, free = (answer for answer in answers if answer is not None)
    assert free.metrics["loss"][0] < best.metrics["loss"][0]
    assert anywhere.scenario.law.extrapolation(anywhere.architectures(free.genotypes))[0] > 1.0


def test_steps_of_a_design_lead_to_designs_inside() -> None:
    problem = problem_of("paper", "raspberry_pi_5", ["resident_gb=2"])
    answer = pick_of(problem, PickRule(None))
    assert answer is not None
    (inside,), (free,) = (
        steps_from(each, answer.genotypes) for each in (problem, replace(problem, budgets=problem.limits))
    )
    assert {step.step for step in inside} < {step.step for step in free}
    near = problem.space.neighbours_of_each(answer.genotypes)[1]
    law = problem.scenario.law
    assert len(inside) == int((law.extrapolation(problem.architectures(near)) <= 1.0).sum())


def test_the_paper_s_preset_has_no_such_constraint() -> None:
    problem = assemble(*layered({"algo": "nsga2"}, [], None)).problem
    assert problem.limits == problem.budgets


@pytest.mark.slow
def test_designs_outside_are_shown_beyond_the_frontier_but_not_on_it(concluded: Concluded) -> None:
    keys = {"space": "paper", "law": "evidence", "device": "raspberry_pi_5", "budgets": {"memory_gb": 2}}
    found = concluded(400, outside="mark", **keys)
    beyond, law = beyond_evidence(found), found.study.problem.scenario.law
    assert len(beyond)
    assert (law.extrapolation(found.study.problem.architectures(beyond.genotypes)) > 1.0).all()
    assert (found.frontier.metrics[EXTRAPOLATION] == 1.0).all()
    assert not np.intersect1d(beyond.keys, found.frontier.keys).size
    assert not len(beyond_evidence(concluded(400, outside="exclude", **keys)))


def test_outside_of_a_flag_replaces_the_limit_that_a_recorded_study_had_of_it() -> None:
    recorded = {"law": "evidence", "outside": "exclude", "budgets": {"total_ms": 5.0, EXTRAPOLATION: 1.0}}
    raw, _ = over(recorded, {}, {"outside": "allow"}, [])
    assert raw["budgets"] == {"total_ms": 5.0}
    assert over(recorded, {}, {}, [])[0]["budgets"] == recorded["budgets"]
    own = recorded["budgets"] | {EXTRAPOLATION: 1.5}
    assert over(recorded | {"budgets": own}, {}, {"outside": "allow"}, [])[0]["budgets"] == own


def test_no_user_is_told_to_relax_what_a_law_covers() -> None:
    for outside, told in (("exclude", False), ("allow", True)):
        problem = problem_of("paper", "rk3588_npu", ["total_ms=1", "resident_gb=0.1"], outside=outside)
        found = diagnosed(problem, problem.evaluate(problem.space.genotypes(np.arange(100))))
        assert any("Relaxing every budget" in line for line in lines(found, whole_space=True)) == told
