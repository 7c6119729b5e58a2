"""The objective `train` with a stand-in for its trainer: values, what is recorded, failures, what is refused by name."""

import csv
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

Run = Callable[..., Any]
Asked = Callable[[], list[dict[str, Any]]]


def rows(folder: Path) -> list[dict[str, str]]:
    """`evaluations.csv` of the run."""
    return list(csv.DictReader((folder / "out" / "evaluations.csv").open()))


def test_every_design_is_trained_once_and_the_run_holds_how(folder: Path, run: Run, inside: Run, asked: Asked) -> None:
    """Values of the trainer, recipe and hash of the text in config.yaml, scratch gone, and --resume trains what is new."""
    answer = run("--out", "out")
    assert answer.code == 0, answer
    jobs = asked()
    assert len(jobs) == len(rows(folder)) == 6
    for row in rows(folder):
        assert float(row["train"]) == pytest.approx(2.0 + 1 / int(row["width"]) + 0.1 / int(row["depth"]))
    assert all(job["there"] == [True, True] and job["config"]["vocab_size"] == 257 for job in jobs)
    assert {job["steps"] for job in jobs} == {2}, "1,000 tokens are two batches of 4 x 128"
    told = yaml.safe_load((folder / "out" / "config.yaml").read_text())["train"]
    assert told["recipe"]["name"] == "small"
    assert told["data"] == [str(folder / "text.txt")]
    assert not list((folder / "tmp").glob("plas-train-*"))
    first = (folder / "out" / "evaluations.csv").read_bytes()
    assert run("--out", "other", "--workers", "1").code == 0
    assert (folder / "other" / "evaluations.csv").read_bytes() == first, "on one worker the same bytes"
    before = len(asked())
    answer = inside("run", "--resume", "out", "--evaluations", 8)
    assert answer.code == 0, answer
    assert len(asked()) == before + 2


def test_a_failure_says_its_reason_and_formulas_come_first(folder: Path, run: Run, trainer: Path, asked: Asked) -> None:
    """Diverged, killed and garbled trainings fail their design alone; one over a budget is not trained."""
    (trainer / "behaviour").write_text(
        "import signal\n"
        "if config['hidden_size'] == 96: print(json.dumps({'state': 'diverged', 'reason': 'loss nan at step 3'})); sys.exit()\n"
        "if config['num_hidden_layers'] == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "if config['num_hidden_layers'] == 4: print('what?'); sys.exit()\n"
    )
    answer = run("--out", "out", algo="exact", preset="paper", budgets={"params_total": 90_000})
    assert answer.code == 0, answer
    reasons = {(int(r["depth"]), int(r["width"])): r["reason"] for r in rows(folder)}
    assert reasons[1, 32] == ""
    assert reasons[1, 96] == "train: diverged, loss nan at step 3"
    assert reasons[2, 32] == "train: killed, signal 9"
    assert reasons[4, 32].startswith("train: failed, expected a line of JSON")
    screened = [row for row in rows(folder) if row["reason"].startswith("screened: params_total")]
    assert len(asked()) == len(rows(folder)) - len(screened) > 0
    assert screened


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"workers": "none"},
            "workers: expected workers for train, got none; add --workers 1 or more, or --set executor=URL",
        ),
        ({"train": "none"}, "train: expected how to train, got nothing; add for example train: {data: stdlib, tokens"),
        ({"train": {"data": "text.txt"}}, "train.tokens: expected"),
        ({"train": {"data": "text.txt", "tokens": 1000, "tokns": 2}}, "train.tokns: unknown key; remove it"),
        ({"train": {"data": "text.txt", "tokens": 100}}, "train.tokens: expected at least a batch of 4 x 128 = 512"),
        ({"train": {"data": "nothing.txt", "tokens": 1000}}, "train.data: expected a text file, a folder, a pattern"),
        ({"train": {"data": "short.txt", "tokens": 1000}}, "train.validation: expected more than 128 tokens"),
        ({"train": {"data": "text.txt", "tokens": 1000, "recipe": "smal"}}, "train.recipe: expected a recipe"),
        ({"train": {"data": "text.txt", "tokens": 1000, "recipe": {"name": "x"}}}, "train.recipe: "),
        ({"train": {"data": "text.txt", "tokens": 1000, "device": "gpu"}}, "train.device: "),
        ({"vocabulary": 100}, "tokenizer: expected at most the vocabulary's 100 ids, got 257"),
        (
            {"precisions": ["fp16", "int8"]},
            "train: expected a space whose designs are architectures alone, got precision",
        ),
        ({"space": "edge2026"}, "train: expected full attention and an FFN in every layer, got n_"),
    ],
)
def test_refused_by_name(run: Run, asked: Asked, folder: Path, changes: dict[str, Any], expected: str) -> None:
    """Nothing is trained and nothing is written."""
    (folder / "short.txt").write_text("few words\n" * 20)
    answer = run("--out", "out", **changes)
    assert answer.code == 2, answer
    assert expected in answer.err
    assert not asked()
    assert not (folder / "out").exists()


def test_a_run_goes_on_with_its_text_alone(folder: Path, run: Run, inside: Run, asked: Asked) -> None:
    """Another text under the same name is refused by its hash, another seed by its key; a text that has moved is found again."""
    assert run("--out", "out").code == 0
    before, resumed = len(asked()), ("run", "--resume", "out", "--evaluations", 8)
    (folder / "text.txt").rename(folder / "moved.txt")
    (folder / "text.txt").write_text("something else altogether\n" * 3000)
    assert "train.data: expected the text " in inside(*resumed).err
    assert (
        "resume: objectives.train.seed: 0 in the run, 1 now"
        in inside(*resumed, "--set", "train.data=moved.txt", "--set", "train.seed=1").err
    )
    assert len(asked()) == before
    answer = inside(*resumed, "--set", "train.data=moved.txt")
    assert answer.code == 0, answer
    assert len(asked()) == before + 2


def test_a_worker_that_cannot_train_stops_the_run(run: Run, trainer: Path, folder: Path) -> None:
    """No design is to blame for a device that is not there: it is tried three times, and what arrived is kept."""
    (trainer / "behaviour").write_text(
        "print(json.dumps({'state': 'no_device', 'reason': '0 CUDA devices'})); sys.exit()\n"
    )
    answer = run("--out", "out")
    assert answer.code == 1, answer
    assert "executor: expected workers that can evaluate train, got no_device: 0 CUDA devices" in answer.err
    (trainer / "behaviour").unlink()


@pytest.mark.usefixtures("trainer")
def test_models_to_compare_with_would_be_trained_again(run: Run) -> None:
    """They are left out, and the run says so; formats that are priced and not trained are said, too."""
    answer = run("--out", "out", baselines=["qwen2.5_0.5b"], precision="int4")
    assert answer.code == 0, answer
    assert "left out of the comparison, for which train of every design would be had once more" in answer.err
    assert "train: losses of weights that are not quantised, whatever int4 costs" in answer.err


@pytest.mark.slow
def test_a_training_that_takes_too_long_is_ended(run: Run, trainer: Path, folder: Path) -> None:
    """It fails with `timeout`, and its process is gone."""
    (trainer / "behaviour").write_text(f"time.sleep(2); open({str(trainer / 'survived')!r}, 'w')\n")
    answer = run("--out", "out", "--set", "evaluation_timeout=0.5", evaluations=2)
    assert answer.code == 2, answer
    assert {row["reason"] for row in rows(folder)} == {"train: timeout after 0.5 s"}
    time.sleep(2.5)
    assert not (trainer / "survived").exists()


def test_known_results_are_of_the_same_settings(folder: Path, run: Run, asked: Asked) -> None:
    """Another run's losses are taken where its trainings were these, and refused where they were of other tokens."""
    assert run("--out", "first").code == 0
    before = len(asked())
    answer = run("--set", "known=first", "--out", "out", seed=1, evaluations=3)
    assert answer.code == 0, answer
    assert "known: first: 6 results taken" in answer.out
    assert len(asked()) == before + 3
    answer = run("--set", "known=first", "--out", "other", train={"data": "text.txt", "tokens": 2000})
    assert answer.code == 2, answer
    assert "known: first: expected values of train as this study has it, got others in train.tokens" in answer.err


@pytest.mark.slow
@pytest.mark.skipif(find_spec("distributed") is None, reason="needs the extra dask, which is not installed")
def test_on_a_cluster_the_same_bytes_without_workers_in_the_study(folder: Path, run: Run) -> None:
    """`--set executor=URL` takes the place of `workers`; workers import the trainer of this project, whatever `nas` lies about."""
    from distributed import LocalCluster

    (folder / "nas").mkdir()
    (folder / "nas" / "__init__.py").write_text("raise RuntimeError('not this one')\n")
    assert run("--out", "serial").code == 0
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        answer = run("--set", f"executor=dask:{cluster.scheduler_address}", "--out", "out", workers="none")
    assert answer.code == 0, answer
    assert (folder / "out" / "evaluations.csv").read_bytes() == (folder / "serial" / "evaluations.csv").read_bytes()
