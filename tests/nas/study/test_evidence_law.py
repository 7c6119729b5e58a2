"""What the shipped law `evidence` promises of its draws."""

import itertools

import numpy as np
import pytest

from nas.study.catalogue import load_law, load_space
from search_spaces.architectures import Architectures


def test_more_active_experts_with_all_else_equal_never_lose_under_any_draw() -> None:
    law, space = load_law("evidence"), load_space("paper")
    for draw in law.drawn:
        assert draw.coefficients["alpha_active"] > 0
        assert draw.coefficients["alpha_stored"] > 0
    designs = space.architectures(np.concatenate([*space.enumerate()]))
    loss = law.loss(designs)
    place: dict[tuple[int, ...], list[tuple[int, float]]] = {}
    for i, row in enumerate(
        zip(designs.depth, designs.width, designs.n_experts, designs.expert_size, designs.n_kv_heads, strict=True)
    ):
        place.setdefault(tuple(map(int, row)), []).append((int(designs.top_k[i]), float(loss[i])))
    steps = [sorted(found) for found in place.values() if len(found) > 1]
    assert len(steps) > 1000
    assert all(low[1] > high[1] for found in steps for low, high in itertools.pairwise(found))


def test_the_shipped_laws_coefficients_give_the_mean_of_its_draws() -> None:
    law = load_law("evidence")
    rows = Architectures.concatenate([each for region in law.covers.values() if (each := region.designs_as_built)])
    for tokens in (1e10, 1e11, 1e12):
        at = law.model_copy(update={"tokens": tokens})
        assert at.loss(rows) == pytest.approx(at.drawn_losses(rows).mean(axis=0), abs=0.02)
    assert law.faults_of(law.drawn) == [""] * len(law.drawn)
