"""Results from before a run: told as to any strategy, and learned from at once."""

import numpy as np
import pytest
from core_tests import loaded

core = loaded("nas/search/test_known_results.py")
Study, lab = core.Study, core.lab


@pytest.mark.slow
def test_they_are_taken_for_nothing(lab: Study) -> None:
    core.test_every_strategy_takes_known_results_for_nothing("prior_guided", lab)


@pytest.mark.slow
def test_without_waiting_they_are_charged_to_nobody_either(lab: Study) -> None:
    core.test_without_waiting_they_are_charged_to_nobody_either("prior_guided", lab)


def test_it_learns_from_them_at_once(lab: Study) -> None:
    answer = lab.ran("prior_guided", "run", "--set", "known=first", "--verbose", evaluations=10)
    assert "10 evaluations and 30 known results; left out" in answer.out
    assert lab.calls() == 10
    learned = lab.summary("run")["learned"][lab.metric]
    assert (learned["evaluations"], learned["known"]) == (10, 30)
    assert np.unique([row["batch"] for row in lab.rows("run")[30:]]).tolist() == ["0"]
