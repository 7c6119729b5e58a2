"""How sums of parts find a frontier: ties, efforts, kills, what users declare, and what is refused."""

import json
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nas.exact.checkpoint import SolverCheckpoint
from nas.exact.decomposition import branch_and_bound as search_module
from nas.exact.decomposition import frontier as frontier_module
from nas.exact.decomposition.additive_bounds import AdditiveBounds, BrokenSum, largest_difference, undeclared
from nas.exact.decomposition.branch_and_bound import BranchAndBound, Exceeded
from nas.exact.decomposition.dominance_lookup import SLACK, Bins, Table, ordered
from nas.exact.decomposition.frontier import SumsOfParts
from nas.exact.decomposition.grid import Backbones, Grid, Items
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.objective import EXTRAPOLATION, Budget, Objective, built_in
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from objectives import counts
from objectives.loss_law.law import Law
from objectives.parts import Composition
from objectives.shares import Share
from search_spaces.space import SearchSpace


def metrics_of(problem: Problem) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*(o.name for o in problem.objectives), *(b.metric for b in problem.budgets)]))


def agree(problem: Problem, whole: Evaluations) -> None:
    """AdditiveBounds of parts find the members that brute force finds, in the same order, having covered everything."""
    sums = SumsOfParts(problem, metrics_of(problem))
    found = sums.frontier(problem.objectives, problem.budgets)
    assert ([] if found is None else found.keys.tolist()) == whole.keys[frontier_rows(whole)].tolist()
    assert sums.effort.covered == problem.space.size


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mechanism at sizes of tests: strides, blocks, pieces."""
    monkeypatch.setattr(frontier_module, "WORTH_STRIDES", 300)
    monkeypatch.setattr(frontier_module, "BLOCK", 50)
    monkeypatch.setattr(frontier_module, "AT_ONCE", 200)
    monkeypatch.setattr(search_module, "AT_ONCE", 200)


@pytest.fixture
def regular(problem_of: Callable[..., Problem]) -> Problem:
    """86,016 architectures whose expert counts and sizes are multiples: memory ties by the thousand."""
    axes = {
        "depth": list(range(2, 18, 2)),
        "width": [512, 768, 1024],
        "n_experts": [1, 2, 4, 8, 16, 32, 64],
        "top_k": [1, 2, 4, 8],
        "expert_size": list(range(32, 1025, 32)),
        "n_kv_heads": [1, 2, 4, 8],
    }
    space = SearchSpace.from_mapping({"axes": axes})
    problem = assemble({"default_budget": "none", "objectives": ["loss", "memory_gb"]}, {}).problem
    return replace(problem, space=space)


def test_tied_members_are_all_kept(regular: Problem) -> None:
    whole = regular.evaluate(regular.space.genotypes(np.arange(regular.space.size)))
    expected = whole[frontier_rows(whole)]
    assert len(expected) > len(np.unique(expected.values.round(9), axis=0)) + 100, "this space is here for its ties"
    agree(regular, whole)


def test_every_metric_declares_its_parts(regular: Problem) -> None:
    assert undeclared(regular, regular.metric_names) is None


def test_an_effort_beyond_the_limit_ends_the_search(regular: Problem) -> None:
    with pytest.raises(Exceeded):
        SumsOfParts(regular, ("loss", "memory_gb"), most=1000).frontier(regular.objectives, ())


def test_report_counts_every_architecture_once(small_steps: None, regular: Problem) -> None:
    counted: list[int] = []
    SumsOfParts(regular, ("loss", "memory_gb")).frontier(regular.objectives, (), report=counted.append)
    assert sum(counted) == regular.space.size
    assert min(counted) >= 0


class Killed(Exception):
    """Stands for a process that dies."""


class Mortal:
    """Keeps what a checkpoint saves, and dies at one of the savings."""

    def __init__(self, kept: list[str], death: int) -> None:
        self.kept, self.left = kept, death

    def __call__(self, written: Mapping[str, Any]) -> None:
        self.kept[0], self.left = json.dumps(written), self.left - 1
        if self.left == 0:
            raise Killed


def settling(blocks: list[Any]) -> Callable[..., None]:
    """`BranchAndBound.settle` that keeps what it was given."""
    settle = BranchAndBound.settle

    def kept(self: BranchAndBound, block: Any, *rest: Any) -> None:
        blocks.append(block)
        settle(self, block, *rest)

    return kept


def test_a_killed_solution_continues_from_its_notebook(
    small_steps: None, regular: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nas.exact.checkpoint.SAVE_EVERY_S", 0.0)
    whole, kept = SumsOfParts(regular, ("loss", "memory_gb")), ["{}"]
    expected = whole.frontier(regular.objectives, ())
    for death in (2, 3, 4):
        dying = SumsOfParts(regular, ("loss", "memory_gb"), SolverCheckpoint(json.loads(kept[0]), Mortal(kept, death)))
        with pytest.raises(Killed):
            dying.frontier(regular.objectives, ())
    last, blocks = SumsOfParts(regular, ("loss", "memory_gb"), SolverCheckpoint(json.loads(kept[0]))), list[Any]()
    monkeypatch.setattr(BranchAndBound, "settle", settling(blocks))
    found = last.frontier(regular.objectives, ())
    assert expected is not None
    assert found is not None
    assert found.keys.tolist() == expected.keys.tolist()
    assert last.effort == whole.effort, "counted as if it had not been killed"
    everything = sum(len(list(BranchAndBound(regular, sums, (), ()).blocks(50))) for sums in last.sums)
    assert 0 < len(blocks) < everything, "what was settled before is not settled again"


def user_metric(parts: Callable[[Any], Share], value: Callable[[Any], Any]) -> Objective:
    """A user's metric that declares its parts."""

    def function(architectures: Any) -> Any:
        return value(architectures)

    function.parts = parts  # type: ignore[attr-defined]
    return Objective("module:metric", "", False, function)


def experts_and_layers(shares: Any) -> Share:
    """depth · (E + n_kv) as parts."""
    a = shares.architectures
    column = {"base": None, "attention": a.n_kv_heads, "ffn": a.n_experts}[shares.part]
    return Share() if column is None else Share(per_layer=(column.astype(float),))


def test_a_users_metric_may_declare_parts(regular: Problem) -> None:
    metric = user_metric(experts_and_layers, lambda a: a.depth * (a.n_experts + a.n_kv_heads).astype(float))
    problem = replace(regular, functions=(metric,), objectives=(built_in("loss"), metric))
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    agree(problem, whole)


def test_a_metric_may_fall_with_what_it_is_made_of(regular: Problem) -> None:
    """Bounds of a falling metric come from the largest sums: 1 / parameters beside the loss."""

    def value(architectures: Any) -> Any:
        return 1e9 / counts.total(architectures)

    metric = Objective("module:scarcity", "", False, value)
    value.composition = lambda scenario: Composition({"params_total": -1}, lambda n: 1e9 / n)  # type: ignore[attr-defined]
    objectives = (built_in("memory_gb"), metric)
    problem = replace(regular, functions=(metric,), objectives=objectives, budgets=(Budget("module:scarcity", 5.0),))
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    assert 0 < whole.feasible.sum() < len(whole)
    agree(problem, whole)


@pytest.mark.parametrize(
    "value",
    [
        lambda a: a.depth * (a.n_experts + a.n_kv_heads) + 1e-6 * a.top_k,
        lambda a: 1.0 + a.depth * (a.n_experts + a.n_kv_heads),
    ],
)
def test_parts_that_do_not_add_up_are_refused(regular: Problem, value: Callable[[Any], Any]) -> None:
    metric = user_metric(experts_and_layers, value)
    problem = replace(regular, functions=(metric,), objectives=(metric,))
    with pytest.raises(
        BrokenSum, match=r"module:metric: expected parts that add up.*differs from the sum of its parts"
    ):
        SumsOfParts(problem, ("module:metric",))


def hump(shares: Any) -> Share:
    """A sum whose FFN term neither rises nor falls with m."""
    a = shares.architectures
    if shares.part != "ffn":
        return Share(once=(np.ones(len(a)),))
    return Share(once=((a.expert_size - 500.0) ** 2,))


def test_parts_that_are_not_monotonic_are_refused(regular: Problem) -> None:
    metric = user_metric(hump, lambda a: 2.0 + (a.expert_size - 500.0) ** 2)
    problem = replace(regular, functions=(metric,), objectives=(metric,))
    with pytest.raises(BrokenSum, match="is better inside a range than its bound says"):
        SumsOfParts(problem, ("module:metric",))


def test_differences_between_sums_and_wholes_are_rounding(regular: Problem) -> None:
    sums = AdditiveBounds.for_metrics(regular, Grid(regular.space), regular.metric_names)
    assert largest_difference(sums, regular.metric_names, np.random.default_rng(1)) < 1e-14


@example([1.0, 1.0, -5.0])  # a range of one value, and one further below it than whole numbers hold
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=50))
def test_bins_never_fall(values: list[float]) -> None:
    rising = np.sort(np.array(values))
    assert (ordered(rising)[1:] >= ordered(rising)[:-1]).all()
    bins = Bins(rising[len(rising) // 3], rising[-1], 16).index(rising)
    assert (np.diff(bins) >= 0).all()
    assert bins.min() >= 0
    assert bins.max() <= 16


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_the_table_never_calls_behind_what_is_not(seed: int, objectives: int) -> None:
    generator = np.random.default_rng(seed)
    points = np.exp(generator.normal(size=(200, objectives)))
    table = Table(points[:100])
    table.add(points[100:150] * 0.1)
    known = np.concatenate([points[:100], points[100:150] * 0.1])
    asked = np.exp(generator.normal(size=(300, objectives)))
    behind = table.behind(list(asked.T))
    truly = (known[None] < asked[:, None] * (1 - SLACK)).all(axis=2).any(axis=1)
    assert not (behind & ~truly).any()
    assert behind.sum() >= 0.5 * truly.sum(), "a table that lets everything through is no use"


def test_equal_points_are_let_through() -> None:
    table = Table(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert table.behind([np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.0])]).tolist() == [False, False, True]


def test_what_is_beyond_floating_point_is_behind_what_is_better_in_the_rest() -> None:
    table = Table(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert table.behind([np.full(3, np.inf), np.array([0.5, 1.5, 3.0])]).tolist() == [False, True, True]
    assert table.behind([np.array([0.5, 1.5, 3.0]), np.full(3, np.inf)]).tolist() == [False, True, True]
    assert Table(np.array([[1.0]])).behind([np.array([np.inf, 0.5])]).tolist() == [True, False]


def test_a_share_times_a_factor() -> None:
    share = Share((np.ones(2),), (np.full(2, 3.0),)).times(2.0)
    assert [term.tolist() for term in (*share.per_layer, *share.once)] == [[2.0, 2.0], [6.0, 6.0]]


def dip(at: int) -> Callable[[Any], Any]:
    """What falls at one expert size alone."""
    return lambda a: 2.0 - (a.expert_size == at).astype(float)


def test_a_half_that_is_better_than_its_whole_ends_the_search(
    regular: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no random box shows it, the search itself does."""
    monkeypatch.setattr(frontier_module, "largest_difference", lambda *_: 0.0)
    for at, said in ((1024, None), (512, "module:metric is better inside a range than its bound says")):
        value = dip(at)

        def shares(each: Any, value: Any = value) -> Share:
            return Share(once=(value(each.architectures),)) if each.part == "ffn" else Share()

        metric = user_metric(shares, value)
        problem = replace(regular, functions=(metric,), objectives=(built_in("loss"), metric))
        if said is None:
            agree(problem, problem.evaluate(problem.space.genotypes(np.arange(problem.space.size))))
            continue
        with pytest.raises(BrokenSum) as caught:
            SumsOfParts(problem, ("loss", "module:metric")).frontier(problem.objectives, ())
        assert caught.value.reason == said


def test_an_architecture_that_is_not_its_sum_ends_the_search(regular: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_module, "largest_difference", lambda *_: 0.0)
    metric = user_metric(experts_and_layers, lambda a: a.depth * (a.n_experts + a.n_kv_heads) + 1e-6 * a.top_k)
    problem = replace(regular, functions=(metric,), objectives=(built_in("loss"), metric))
    with pytest.raises(BrokenSum, match="one that differs from the sum of its parts"):
        SumsOfParts(problem, ("loss", "module:metric")).frontier(problem.objectives, ())


def test_parts_of_the_loss_where_the_law_has_none_are_refused(regular: Problem) -> None:
    law = Law.model_validate({"form": "bilinear_moe", "coefficients": {"a": -0.08, "b": -0.02, "c": 0.004, "d": 1.0}})
    metric = user_metric(lambda shares: shares["loss"], lambda a: law.loss(a))
    scenario = replace(regular.scenario, law=law)
    problem = replace(regular, scenario=scenario, functions=(metric,), objectives=(metric,))
    with pytest.raises(BrokenSum, match=r"loss: .* got one that is no sum of parts"):
        SumsOfParts(problem, ("module:metric",))


def test_blocks_are_made_one_by_one_and_hold_everything_once() -> None:
    """All pairs of FFNs and backbones at once took 9 GB in a space of 10^16."""
    experts = list(range(1, 61))
    axes = {"depth": {"from": 1, "to": 400, "step": 1}, "width": [128, 256], "n_experts": experts, "top_k": experts}
    space = SearchSpace.from_mapping(
        {"name": "wide", "axes": {**axes, "expert_size": [64, 128], "n_kv_heads": [1, "n_heads"]}}
    )
    grid = Grid(space)
    backbones = Backbones.from_grid(grid)
    tracemalloc.start()
    first = next(Items.everything(grid, backbones, 1000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    blocks = list(Items.everything(grid, backbones, 1000))
    total = sum(map(len, blocks))
    assert 500 <= len(first) <= 2000
    assert total > 90_000
    assert peak < 8 * total
    assert sum(int(block.boxes.volumes[block.box].sum()) for block in blocks) == space.size
    pairs = {
        (int(w), int(g), int(p))
        for block in blocks
        for w, g, p in zip(block.boxes.width[block.box], block.boxes.group[block.box], block.backbone, strict=True)
    }
    assert len(pairs) == total
    assert all((backbones.width[block.backbone] == block.boxes.width[block.box]).all() for block in blocks)


def test_a_group_of_depths_is_no_worse_than_what_is_in_it() -> None:
    problem = assemble({"space": "fine", "law": "evidence", "algo": "exact"}, {}).problem
    metrics = (*metrics_of(problem), EXTRAPOLATION)
    sums = AdditiveBounds.for_metrics(problem, Grid(problem.space, 16), metrics)
    everything = next(Items.everything(sums.grid, sums.backbones, 10**6, sums.tree))
    box, size = everything.boxes, everything.boxes.size_high
    small = replace(everything, boxes=replace(box, expert_high=box.expert_low, size_low=size // 2, size_high=size // 2))
    ffn = sums.ffn(small.boxes)
    inside, fresh = small.opened(sums.tree, sums.tree.count[small.backbone] > 0)
    group = np.repeat(np.arange(len(small)), np.maximum(sums.tree.count[small.backbone], 1))
    assert fresh.all()
    for metric in metrics:
        best = sums.values(metric, ffn, small.box, small.backbone)[group]
        members = sums.values(metric, ffn, inside.box, inside.backbone)
        assert (best <= members + 1e-12 * np.abs(members)).all(), metric
