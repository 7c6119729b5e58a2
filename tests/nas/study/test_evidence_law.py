"""What the shipped law `evidence` promises of its draws."""

import itertools

import numpy as np

from nas.study.catalogue import load_law, load_space
from objectives.evidence.joint_form import coordinates


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


def test_draws_of_the_shipped_law_lie_about_its_coefficients() -> None:
    law = load_law("evidence")
    centre, _ = coordinates(law.coefficients)
    drawn = np.stack([coordinates(dict(draw.coefficients))[0] for draw in law.drawn])
    assert np.abs((drawn.mean(axis=0) - centre) / drawn.std(axis=0)).max() < 0.2
