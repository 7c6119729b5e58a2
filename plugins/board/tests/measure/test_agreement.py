"""Which picks measurement changes, against cases worked out by hand."""

import numpy as np

from plas_board.measure.command import Agreement

PREDICTED = np.array([[1.0, 4.0, 5.0], [2.0, 8.0, 10.0]])


def made(measured: list[list[float]]) -> Agreement:
    """Two candidates, the second slower and better."""
    return Agreement(["small", "large"], np.array([3.0, 2.0]), PREDICTED, np.array(measured))


def test_the_same_pick() -> None:
    """Nothing changes where the same candidates fit."""
    assert made([[1, 4, 5.5], [2, 8, 10.5]]).changes({"q": ("total_ms", 11.0)}) == []


def test_a_smaller_pick() -> None:
    """The better one no longer fits."""
    (said,) = made([[1, 4, 5], [4, 16, 20]]).changes({"q": ("total_ms", 11.0)})
    assert said == "q (total_ms <= 11): small instead of large, which takes 20 ms measured"


def test_no_pick_and_a_new_one() -> None:
    """Nothing fits as measured, or something does that did not as predicted."""
    assert (
        made([[9, 9, 18], [9, 9, 18]])
        .changes({"q": ("prefill_ms", 2.0)})[0]
        .startswith("q (prefill_ms <= 2): none instead of large")
    )
    assert made([[0.1, 1, 1.1], [9, 9, 18]]).changes({"q": ("prefill_ms", 0.5)}) == [
        "q (prefill_ms <= 0.5): small instead of none"
    ]
