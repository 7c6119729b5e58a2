"""The benchmark of workers: what its shares are of, and a simulation that agrees with arithmetic at its ends."""

from pathlib import Path

import pytest

from benchmarks.parallel import busy, saturated


def test_a_driver_that_costs_nothing_keeps_everybody_busy() -> None:
    assert saturated(40, 0.2, 0.0) == pytest.approx(1.0)


@pytest.mark.parametrize("workers", [40, 400])
def test_a_driver_that_is_the_bottleneck_serves_one_answer_after_the_other(workers: int) -> None:
    driver_ms, seconds = 20.0, 0.02 * workers / 10
    assert saturated(workers, seconds, driver_ms) == pytest.approx(seconds / (workers * driver_ms / 1e3), abs=0.03)


def test_a_worker_counts_from_the_moment_at_which_all_have_begun(tmp_path: Path) -> None:
    slept = tmp_path / "slept"
    slept.write_text("1 0.0 1.0\n1 1.0 2.0\n2 1.0 1.5\n2 1.5 2.0\n1 2.5 3.0\n")
    assert busy(slept, 2) == pytest.approx((1.0 + 0.5 + 0.5 + 0.5) / (2 * 2.0))
    with pytest.raises(SystemExit, match="expected 3 workers, got 2"):
        busy(slept, 3)
