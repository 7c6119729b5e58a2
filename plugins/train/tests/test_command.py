"""`train` with a stand-in for its worker: the table, what is told to workers, failures, and going on."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.export.recipe import load_recipe
from nas.export.tokenizer import byte_level
from nas.record.folder import locked
from plas_train.command import unused_ids
from plas_train.jobs import Job, jobs_of
from search_spaces.architectures import Architectures, one

Asked = Callable[[], list[dict[str, Any]]]
Trained = Callable[..., Any]


def rows(folder: Path) -> list[dict[str, str]]:
    """`trainings.csv`."""
    return list(csv.DictReader((folder / "trained" / "trainings.csv").open()))


@pytest.mark.slow
def test_table(folder: Path, trained: Trained, asked: Asked) -> None:
    """A row per architecture, tokens and seed, seeds of the file, parameters with and without embeddings."""
    (folder / "more.txt").write_text("something else altogether, and much of it " * 30)
    answer = trained("--text", "more=more.txt", tokens="256,512")
    assert answer.code == 0, answer
    found = rows(folder)
    assert [(r["id"], r["tokens"], r["seed"]) for r in found] == [
        *(("small", tokens, "0") for tokens in ("256", "512")),
        *(("sparse", tokens, seed) for tokens in ("256", "512") for seed in "01"),
    ]
    first = found[0]
    assert first["status"] == "ok"
    assert first["epochs"] == str(round(256 / ((_tokens(folder) - 1) // 32 * 32), 4))
    assert int(first["params_total"]) - int(first["parameters"]) == 257 * 32
    assert float(first["bits_per_byte"]) == pytest.approx(
        float(first["loss"]) / 0.6931471805599453 * _ratio(folder, "validation")
    )
    assert float(first["perplexity_more"]) == pytest.approx(2.718281828459045 ** float(first["loss_more"]))
    sparse, dense = (next(j for j in asked() if bool(j["config"].get("num_experts")) is s) for s in (True, False))
    assert sparse["params_total"] > dense["params_total"]
    assert sparse["config"]["norm_topk_prob"] is False
    assert not list((folder / "trained" / "unfinished").iterdir())


def _tokens(folder: Path) -> int:
    described = json.loads((folder / "trained" / "data" / "data.json").read_text())
    return int(described["train"]["tokens"])


def _ratio(folder: Path, which: str) -> float:
    described = json.loads((folder / "trained" / "data" / "data.json").read_text())
    return float(described[which]["tokens"] / described[which]["bytes"])


@pytest.mark.slow
def test_costliest_first_and_nothing_twice(folder: Path, trained: Trained, asked: Asked) -> None:
    """More tokens come first; --resume trains what a longer list adds, whatever a candidate is called now."""
    assert trained(tokens="256,512").code == 0
    assert [job["steps"] for job in asked()] == [8, 8, 8, 4, 4, 4]
    text = (folder / "list.csv").read_text().replace("small,", "other name,")
    (folder / "list.csv").write_text(text + "new,2,32,16,1,1,1,2,0\n")
    answer = trained("--resume", tokens="256,512")
    assert "7 of 7 trained" not in answer.out
    assert "8 of 8 trained" in answer.out, answer
    assert len(asked()) == 8
    assert trained("--resume", tokens="256,512").code == 0
    assert len(asked()) == 8


@pytest.mark.slow
def test_seeds_of_the_flag(trained: Trained, asked: Asked) -> None:
    """--seeds stands for the file's column; equal trainings are one. The tokenizer has an id for every entry."""
    answer = trained("--seeds", "4,5")
    assert answer.code == 0
    assert "ids of vocabularies" not in answer.out
    assert sorted((bool(j["config"].get("num_experts")), j["seed"]) for j in asked()) == [
        *((False, 4), (False, 5)),
        *((True, 4), (True, 5)),
    ]


@pytest.mark.slow
def test_losses_on_the_way(folder: Path, trained: Trained, asked: Asked) -> None:
    """Kept after whole batches, the tokens seen in the column's name; of a training that is as short, only at its end."""
    answer = trained("--losses-after", "100,256", tokens="256,512")
    assert answer.code == 0, answer
    assert {len(job["between_steps"]) for job in asked()} == {1, 2}
    short, long = (row for row in rows(folder) if row["id"] == "small")
    assert [float(long[f"loss_after_{n}"]) - float(long["loss"]) for n in (128, 256)] == pytest.approx([2.0, 4.0])
    assert float(short["loss_after_128"]) - float(short["loss"]) == pytest.approx(2.0)
    assert short["loss_after_256"] == ""


def test_vocabularies_larger_than_the_tokenizer_are_said() -> None:
    """Designs of several vocabularies on the text of one tokenizer would be compared by rows that nothing reads."""
    columns = {"depth": 1, "width": 32, "head_dim": 16, "n_kv_heads": 1, "expert_size": 64}
    recipe, tokenizer = load_recipe("small"), byte_level()

    def jobs(*sizes: int) -> list[Job]:
        designs = Architectures.concatenate([one({**columns, "vocabulary": size}) for size in sizes])
        return jobs_of(designs, [str(size) for size in sizes], [[0]] * len(sizes), [512], recipe, tokenizer)

    assert unused_ids(jobs(257)) == ""
    assert "uses 257 ids of vocabularies of 1,000, 2,000" in unused_ids(jobs(2000, 257, 1000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "status", "reason", "again"),
    [
        (
            'print(json.dumps({"state": "diverged", "reason": "loss nan at step 3"})); sys.exit()',
            "diverged",
            "loss nan",
            0,
        ),
        ('sys.exit("no such kernel")', "failed", "no such kernel", 0),
        ('sys.exit("torch.OutOfMemoryError: CUDA out of memory")', "out_of_memory", "out of memory", 0),
        ('print("hello"); sys.exit()', "failed", "expected a line of JSON", 0),
        ("os.kill(os.getpid(), 9)", "killed", "signal 9", 2),
    ],
)
def test_failures_are_recorded(
    behaviour: str, status: str, reason: str, again: int, folder: Path, trained: Trained, asked: Asked
) -> None:
    """A failure is a row with its reason and no loss; --resume repeats only what was killed, --retry-failed all."""
    (folder / "behaviour").write_text(behaviour)
    answer = trained()
    assert answer.code == 0, answer
    assert "2 without a loss" in answer.out
    assert {r["status"] for r in rows(folder) if r["id"] == "sparse"} == {status}
    assert all(reason in r["reason"] and not r["loss"] for r in rows(folder) if r["id"] == "sparse")
    assert "Warning: sparse-" in answer.err
    before = len(asked())
    (folder / "behaviour").unlink()
    trained("--resume")
    assert len(asked()) - before == again
    trained("--resume", "--retry-failed")
    assert {r["status"] for r in rows(folder)} == {"ok"}


@pytest.mark.slow
def test_fit_says_what_it_leaves_out(folder: Path, trained: Trained, inside: Any) -> None:
    """`fit` takes the folder, uses rows with a loss and names the lines of the others."""
    lines = ["id,depth,width,head_dim,n_kv_heads,expert_ffn_ratio,n_experts"]
    lines += [f"c{d}-{w},{d},{w},16,1,2,1" for d in (1, 2, 3) for w in (32, 48, 64, 96)] + ["bad,2,32,16,1,2,4"]
    (folder / "list.csv").write_text("\n".join(lines) + "\n")
    (folder / "behaviour").write_text('print(json.dumps({"state": "diverged", "reason": "why"})); sys.exit()')
    assert trained("--workers", "2").code == 0
    flags = ("--form", "depth_width", "--fix", "alpha_l=0.5", "--starts", "2", "--bootstraps", "0")
    answer = inside("fit", "trained", *flags, "--quiet", "--json")
    assert answer.code == 0, answer
    content = json.loads(answer.out)
    assert content["data"]["rows"] == 12
    assert any("1 rows left out by status diverged (lines 2)" in note for note in content["data"]["notes"])


def test_everything_failed(folder: Path, trained: Trained) -> None:
    """No loss at all is exit code 1."""
    (folder / "list.csv").write_text("\n".join(CANDIDATE for CANDIDATE in _sparse()))
    (folder / "behaviour").write_text('sys.exit("broken")')
    answer = trained()
    assert answer.code == 1
    assert "expected losses, got 1 failed trainings" in answer.err


def _sparse() -> list[str]:
    return ["id,depth,width,head_dim,n_kv_heads,expert_ffn_ratio,n_experts", "x,1,32,16,1,2,4", ""]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "code", "said"),
    [
        (
            'print(json.dumps({"state": "unwritable", "reason": "c.pt: No space left on device"}))',
            1,
            "No space left on device; free",
        ),
        (
            'print(json.dumps({"state": "no_device", "reason": "0 CUDA devices"}))',
            2,
            "expected one that is here, got 0 CUDA devices",
        ),
    ],
)
def test_what_is_no_fault_of_a_training(
    behaviour: str, code: int, said: str, folder: Path, trained: Trained, asked: Asked
) -> None:
    """No space and no device end the command and are no row; the same command goes on."""
    (folder / "behaviour").write_text(behaviour + "; sys.exit()")
    answer = trained()
    assert (answer.code, said in answer.err) == (code, True), answer
    (folder / "behaviour").unlink()
    assert trained("--resume").code == 0
    assert {r["status"] for r in rows(folder)} == {"ok"}


def test_settings_may_change_until_something_is_trained(folder: Path, trained: Trained) -> None:
    """A device that is not there is corrected by the same command with another, precision and all."""
    (folder / "list.csv").write_text("\n".join(_sparse()))
    (folder / "behaviour").write_text('print(json.dumps({"state": "no_device", "reason": "0"})); sys.exit()')
    assert trained("--device", "cuda").code == 2
    (folder / "behaviour").unlink()
    assert trained().code == 0


@pytest.mark.slow
def test_time_limit(folder: Path, trained: Trained) -> None:
    """At the end of its time the command stops what runs and says what is left."""
    (folder / "behaviour").write_text(
        'exec("while not os.path.exists(job[\'stop\']): time.sleep(0.05)"); print(json.dumps({"state": "stopped"})); sys.exit()'
    )
    answer = trained("--time-limit", "3", "--workers", "3")
    assert answer.code == 0, answer
    assert "1 of 3 trained" in answer.out
    assert "--resume trains the rest" in answer.out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--device", "tpu"), "--device: expected cpu, cuda or cuda:INDEX, got 'tpu'"),
        (("--precision", "fp8"), "--precision: expected a precision"),
        (("--tokenizer", "nowhere"), "expected 'bytes' or a folder with tokenizer.json"),
        (("--recipe", "none"), "recipe: expected a recipe"),
        (("--seeds", "a"), "--seeds: expected whole numbers"),
        (("--text", "text.txt"), "--text: expected NAME=PATH"),
        (("--eval", "empty"), "--eval: expected text, got nothing but empty files"),
        (("--eval", "short.txt"), "--eval: expected more than 32 tokens, one sequence, got 6"),
        (("--vocabulary", "100"), "expected at most the vocabulary's 100 ids, got 257"),
        (("--batch", "20"), "--tokens: expected at least a batch of 20 x 32 = 640, got 256"),
    ],
)
def test_what_cannot_be_done(flags: tuple[str, ...], said: str, folder: Path, trained: Trained) -> None:
    """One line, exit code 2, nothing trained."""
    (folder / "empty").mkdir()
    (folder / "short.txt").write_text("short")
    answer = trained(*flags)
    assert answer.code == 2, answer
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_a_corrected_command_may_take_the_same_folder(trained: Trained) -> None:
    assert trained("--batch", "20").code == 2
    assert trained().code == 0


@pytest.mark.parametrize("data", ["nowhere.txt", "*.none", "empty", "list.csv/x"])
def test_no_data(data: str, folder: Path, trained: Trained) -> None:
    """Data that is not there, or is empty."""
    (folder / "empty").mkdir()
    answer = trained(data=data)
    assert answer.code == 2, answer
    assert "--data: " in answer.err


def test_without_torch(folder: Path, inside: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named before anything is read."""
    monkeypatch.setattr("nas.export.hf_config.find_spec", lambda name: None)
    answer = inside("train", "list.csv", "--data", "text.txt", "--tokens", "1e4")
    assert answer.code == 2
    assert (
        "expected torch and transformers, got no torch and no transformers; pip install 'plas-codesign[hf]'"
        in answer.err
    )


@pytest.mark.slow
def test_folders(folder: Path, trained: Trained) -> None:
    """A folder of something else, of trainings, of other data, in use: each is said."""
    (folder / "trained").mkdir()
    (folder / "trained" / "letter.txt").touch()
    assert "got trained with other files in it" in trained().err
    (folder / "trained" / "letter.txt").unlink()
    assert trained().code == 0
    assert "--resume goes on with them" in trained().err
    assert (
        "expected the settings that it began with (recipe.global_batch 2), got 3"
        in trained("--resume", "--batch", "3").err
    )
    with locked(folder / "trained"):
        assert "another process works on" in trained("--resume").err
    (folder / "text.txt").write_text("".join(f"other words {i}\n" for i in range(300)))
    assert "expected the settings that it began with (data " in trained("--resume").err


def test_a_read_only_folder(folder: Path, trained: Trained) -> None:
    """It is said, not raised."""
    (folder / "trained").mkdir(mode=0o500)
    answer = trained()
    assert answer.code in (0, 2)  # a superuser may write everywhere
    assert "Traceback" not in answer.err


def test_strange_names(folder: Path, trained: Trained) -> None:
    """Names of candidates become safe file names; the table shows them as they are."""
    (folder / "li st;$(x).csv").write_text(
        'id,depth,width,head_dim,n_kv_heads,expert_ffn_ratio\n"../a b|c;é",1,32,16,1,2\n'
    )
    answer = trained(source="li st;$(x).csv")
    assert answer.code == 0, answer
    assert [r["id"] for r in rows(folder)] == ["../a b|c;é"]
    assert [p.name.partition("-")[0] for p in (folder / "trained" / "curves").iterdir()] == ["a"]


def test_json(trained: Trained) -> None:
    """Every training as JSON."""
    content = json.loads(trained("--json", "--quiet").out)
    assert content["whole"] is True
    assert [line["status"] for line in content["trainings"]] == ["ok"] * 3
