"""Steps of the objective `train`, with a stand-in for its trainer, and of a function of one's own: files, refusals, going on."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Run = Callable[..., Any]
Asked = Callable[[], list[dict[str, Any]]]
STEPS = {"data": "text.txt", "tokens": [600, 1100, 2000], "keep": 0.5}
OWN = """\
def loss(architectures, *, fidelity):
    return 1000 / (architectures.depth * architectures.width) + 1 / fidelity


loss.FIDELITIES = (1, 3, 9)
loss.KEEP = 0.4


def other(architectures, fidelity=1.0):
    return architectures.depth / fidelity


other.FIDELITIES = [1.0, 2.0]


def falling(architectures, fidelity):
    return architectures.depth


falling.FIDELITIES = (3, 1)


def greedy(architectures, fidelity):
    return architectures.depth


greedy.FIDELITIES, greedy.KEEP = (1, 3), 1
"""


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_few_tokens_first_and_survivors_longer(folder: Path, run: Run, inside: Run, asked: Asked) -> None:
    """Batches of the trainer by step, both tables, the same bytes on one worker, and nothing is trained again by --resume."""
    answer = run("--out", "out", train=STEPS, evaluations=8)
    assert answer.code == 0, answer
    steps = table(folder / "out" / "steps.csv")
    trained = [job["steps"] for job in asked()]
    assert [trained.count(n) for n in (2, 3, 4)] == [8, 4, 2], "600, 1,100 and 2,000 tokens in batches of 512"
    assert [sum(row["fidelity"] == n for row in steps) for n in ("600.0", "1100.0")] == [8, 4]
    found = table(folder / "out" / "evaluations.csv")
    ok = [row["index"] for row in found if row["state"] == "ok"]
    assert ok == [row["index"] for row in steps if row["fidelity"] == "1100.0" and row["goes_on"] == "1"]
    assert len(ok) == 2
    reasons = [row["reason"] for row in found if row["state"] == "failed"]
    assert all(reason.startswith("stopped: train ") for reason in reasons)
    assert "6 designs were stopped before the full fidelity (steps.csv)" in answer.out
    told = yaml.safe_load((folder / "out" / "config.yaml").read_text())["train"]
    assert (told["tokens"], told["keep"]) == ([600.0, 1100.0, 2000.0], 0.5)
    assert run("--out", "alone", "--workers", "1", train=STEPS, evaluations=8).code == 0
    for name in ("evaluations.csv", "frontier.csv", "steps.csv"):
        assert (folder / "alone" / name).read_bytes() == (folder / "out" / name).read_bytes()
    before = len(asked())
    assert inside("run", "--resume", "out", "--retry-failed").code == 0
    assert len(asked()) == before, "a design that was stopped did not fail"
    answer = inside("run", "--resume", "out", "--evaluations", 12)
    assert answer.code == 0, answer
    again = [job["steps"] for job in asked()[before:]]
    assert again.count(2) == 4
    assert table(folder / "out" / "steps.csv")[: len(steps)] == steps


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        (
            {"tokens": [2000, 1000]},
            "train.tokens: expected two positive numbers or more, each larger than the one before",
        ),
        ({"tokens": [100, 1000]}, "train.tokens: expected at least a batch of 4 x 128 = 512"),
        ({"tokens": 1000, "keep": 0.5}, "keep: expected several numbers of tokens with it, got one"),
        ({"tokens": [600, 1000], "keep": 1.0}, "train.keep: "),
        ({"tokens": [600, 1e16]}, "train.tokens: expected at most 1e+15"),
    ],
)
def test_steps_are_refused_by_name(run: Run, asked: Asked, train: dict[str, Any], expected: str) -> None:
    answer = run("--out", "out", train={"data": "text.txt", **train})
    assert answer.code == 2, answer
    assert expected in answer.err
    assert not asked()


@pytest.fixture
def own(folder: Path, inside: Run) -> Run:
    """A run with functions of one's own."""
    (folder / "mine.py").write_text(OWN)

    def started(objectives: str, *more: object) -> Any:
        keys = ("--algo", "random", "--evaluations", 30, "--set", "baselines=[]", "--no-plots")
        return inside("run", "--objectives", objectives, *keys, *more)

    return started


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        (),
        (
            "--set",
            "asynchronous=true",
        ),
    ],
)
def test_a_function_of_ones_own_has_steps(
    own: Run, inside: Run, folder: Path, more: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    """Of 30 designs 12 go on, then 5; where nobody waits, a third and more, since the first ones are judged beside few."""
    if more:
        request.getfixturevalue("in_threads")  # processes take the function and its fidelity where the run waits
    answer = own("mine:loss,total_ms", "--workers", 2, "--out", "own", *more)
    assert answer.code == 0, answer
    steps, found = table(folder / "own" / "steps.csv"), table(folder / "own" / "evaluations.csv")
    by_step = [[row for row in steps if row["fidelity"] == text] for text in ("1.0", "3.0")]
    assert len(by_step[0]) == 30
    went = [sum(row["goes_on"] == "1" for row in rows) for rows in by_step]
    assert went[0] == len(by_step[1])
    assert went[1] == sum(row["state"] == "ok" for row in found)
    if not more:
        assert went == [12, 5]
    for row in found:
        if row["state"] == "ok":
            value = 1000 / (int(row["depth"]) * int(row["width"])) + 1 / 9
            assert float(row["mine:loss"]) == pytest.approx(value, rel=1e-12)
    answer = inside("run", "--resume", "own", "--evaluations", 36, "--no-plots")
    assert answer.code == 0, answer
    assert table(folder / "own" / "evaluations.csv")[:30] == found


@pytest.mark.parametrize(
    ("objectives", "more", "expected"),
    [
        ("mine:loss,total_ms", (), "workers: expected workers for mine:loss, got none"),
        (
            "mine:loss,mine:other",
            ("--workers", 1),
            "fidelities: expected steps of one metric, got mine:loss, mine:other",
        ),
        (
            "loss,total_ms",
            ("--workers", 1, "--budget", "mine:loss=3"),
            "expected steps of an objective, got mine:loss, a budget",
        ),
        (
            "mine:falling,total_ms",
            ("--workers", 1),
            "FIDELITIES of mine:falling: expected two positive numbers or more",
        ),
        ("mine:greedy,total_ms", ("--workers", 1), "KEEP of mine:greedy: expected a share between 0 and 1, got 1"),
    ],
)
def test_what_nobody_could_choose_by_is_refused(
    own: Run, objectives: str, more: tuple[object, ...], expected: str
) -> None:
    answer = own(objectives, *more)
    assert answer.code == 2, answer
    assert expected in answer.err
