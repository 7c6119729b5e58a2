"""The worker itself: its model against the export's numbers, its data order, gradients, exact resuming, divergence."""

import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.export.checkpoint import tensors
from nas.export.model import Model, Workload
from nas.export.recipe import load_recipe
from nas.export.tokenizer import byte_level
from plas_train.corpus import Corpus, Sources, prepared
from plas_train.jobs import CURVES, UNFINISHED, How, Job, job_settings
from search_spaces.architectures import one
from tests.nas.conftest import interruptible

if find_spec("torch") is not None and find_spec("transformers") is not None:
    import torch

    from benchmarks.trainer import PlainTraining
    from plas_train.workers import train_worker as worker

SHAPE: dict[str, Any] = {"depth": 2, "width": 32, "head_dim": 16, "n_kv_heads": 1, "expert_size": 48, "vocabulary": 257}
SHAPES = {
    "dense": SHAPE,
    "top1": {**SHAPE, "n_experts": 4},
    "top2": {**SHAPE, "n_experts": 4, "top_k": 2},
    "untied": {**SHAPE, "tied": False},
    "qwen2": {**SHAPE, "qk_norm": "no", "qkv_bias": True},
    "llama": {**SHAPE, "qk_norm": "no"},
}
Jobs = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Models this small gain nothing from more."""
    torch.set_num_threads(1)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A small text, validated on a share of it."""
    (tmp_path / "text.txt").write_text("".join(f"{i} times {i} is {i * i}\n" for i in range(600)))
    (tmp_path / CURVES).mkdir()
    (tmp_path / UNFINISHED).mkdir()
    return prepared(tmp_path, Sources([str(tmp_path / "text.txt")], [], {}, 512), byte_level(), lambda _: None)


@pytest.fixture
def model() -> Callable[..., Model]:
    """A candidate by its shape's name."""

    def build(shape: str, steps: int = 6, seed: int = 0) -> Model:
        changed = {"tokens": float(steps * 64), "sequence_length": 32, "global_batch": 2}
        recipe = load_recipe("small").model_copy(update=changed)
        return Model(shape, "", one(SHAPES[shape]), byte_level(), recipe, Workload(1, 32, 1), False, seed)

    return build


@pytest.fixture
def job(tmp_path: Path, corpus: Corpus, model: Callable[..., Model]) -> Jobs:
    """What the worker is told of a shape."""

    def build(shape: str, steps: int = 6, seed: int = 0, **changed: Any) -> dict[str, Any]:
        how = How("cpu", "fp32", 1, 2, 1e9)
        given = job_settings(Job(f"{shape}-0-t{steps}-s{seed}", model(shape, steps, seed)), how, corpus, tmp_path)
        return json.loads(json.dumps(given)) | changed  # type: ignore[no-any-return]

    return build


@pytest.mark.parametrize("shape", SHAPES)
def test_initial_weights_are_the_exports(shape: str, job: Jobs, model: Callable[..., Model]) -> None:
    """Every tensor has the deviation that `export --weights` gives it, and there are as many parameters."""
    held = {tensor.name: tensor for tensor in tensors(model(shape))}
    built = worker.built(job(shape))
    assert sum(p.numel() for p in built.parameters()) == sum(t.size for t in held.values())
    for name, parameter in built.named_parameters():
        own = held.get(name) or held[f"{name.partition('.experts.')[0]}.experts.0.{_part(name)}.weight"]
        spread = float(parameter.detach().std()) if parameter.numel() > 1 else 0.0
        assert spread == pytest.approx(own.std, rel=0.15), name
        assert float(parameter.detach().mean()) == pytest.approx(own.mean, abs=0.02), name


def test_experts_end_with_a_deviation_of_their_own(job: Jobs) -> None:
    """What the recipe's `single_expert_by_count` asks for reaches the experts' down_proj, and nothing else."""
    given = job("top1", expert_std=0.2)
    for name, parameter in worker.built(given).named_parameters():
        if "down_proj" in name:
            assert float(parameter.detach().std()) == pytest.approx(0.2, rel=0.1), name
        elif "norm" not in name:
            assert float(parameter.detach().std()) < 0.15, name


def _part(name: str) -> str:
    """The tensor on disk that a fused one of the experts begins with."""
    return "down_proj" if "down_proj" in name else "gate_proj"


def test_another_number_of_parameters_is_refused(
    job: Jobs, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    """Training never goes on with another model than was exported."""
    given = job("dense")
    given["params_total"] += 1
    with pytest.raises(ValueError, match=r"parameters: expected .* as exported, got"):
        worker.built(given)


@pytest.mark.parametrize("shape", ["top1", "top2"])
def test_router_learns(shape: str, job: Jobs) -> None:
    """The router has a gradient from the loss alone, with one expert per token too; renormalised weights take it away."""

    def gradient(**config: Any) -> float:
        given = job(shape)
        given["config"] |= config
        training = worker.Training(given)
        training._scores(training.data.batch(0, 2, 0))[0].mean().backward()
        return max(
            float(p.grad.abs().max()) for n, p in training.model.named_parameters() if n.endswith("mlp.gate.weight")
        )

    assert gradient() > 1e-5
    if shape == "top1":
        assert gradient(norm_topk_prob=True) < 1e-3 * gradient()


SMOOTH_RATE = {"peak": 2e-3, "final": 2e-4, "global_batch": 16, "micro_batch": 16}


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["dense", "top1", "top2"])
def test_losses_are_those_of_the_plain_loop(shape: str, job: Jobs) -> None:
    """200 steps to 1e-3. At four times this rate a token near a tie changes its expert, and two of transformers' own loops differ by 0.05."""
    given = job(shape, steps=200, **SMOOTH_RATE)
    ours, plain = worker.Training(given), PlainTraining(given)
    for _ in range(200):
        ours.advance()
        plain.advance()
    assert ours.losses == pytest.approx(plain.losses, abs=1e-3)
    assert ours.losses[-1] < ours.losses[0] - 1.0


@pytest.mark.parametrize("shape", ["top1", "top2"])
def test_chosen_experts_give_the_gradients_of_all(shape: str, job: Jobs) -> None:
    """Products of sorted tokens alone, against transformers' experts one after another."""
    ours, plain = worker.Training(job(shape)), PlainTraining(job(shape))
    ours.advance()
    plain.advance()
    assert ours.losses == pytest.approx(plain.losses, rel=1e-6)
    pairs = zip(ours.model.parameters(), plain.model.parameters(), strict=True)
    grads = [(a.grad, b.grad) for a, b in pairs if not a.grad is b.grad is None]  # of a module without tokens
    assert all(torch.allclose(a, b, atol=1e-6, rtol=1e-4) for a, b in grads)
    experts = [m for m in ours.model.modules() if hasattr(m, "gate_up_proj")]
    assert [m.forward.func for m in experts] == [worker.chosen_experts] * len(experts)
    assert len(experts) == (SHAPE["depth"] if version("transformers") >= "5" else 0)  # before, a module each


def test_an_expert_without_tokens_has_no_gradient(job: Jobs) -> None:
    training = worker.Training(job("top1"))
    experts = next((m for m in training.model.modules() if hasattr(m, "gate_up_proj")), None)
    if experts is None:
        pytest.skip("transformers 4 has a module for each expert")
    hidden, chosen = torch.randn(6, SHAPE["width"]), torch.tensor([[0], [2], [2], [0], [3], [0]])
    experts(hidden, chosen, torch.ones(6, 1)).sum().backward()
    assert [bool(g.abs().sum() > 0) for g in experts.down_proj.grad] == [True, False, True, True]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_head_holds_few_logits_and_loses_nothing(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of tokens give the cross entropy of all, with its gradients; no chunk has more logits than are allowed."""
    monkeypatch.setattr(worker, "LOGITS", {"cpu": 700})
    generator = torch.Generator().manual_seed(0)
    hidden, weight = torch.randn(50, 16, generator=generator), torch.randn(70, 16, generator=generator)
    targets, sizes, format_ = torch.randint(70, (50,), generator=generator), list[int](), getattr(torch, dtype)

    def seen(part: Any, *more: Any) -> Any:
        sizes.append(len(part))
        return worker.of_chunk(part, *more)

    grads = []
    for ours in (True, False):
        h, w = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
        if ours:
            loss = worker.HeadLoss.apply(h, w, targets, format_, seen, True) / 50
        else:
            logits = (h.to(format_) @ w.to(format_).T).float()
            loss = torch.nn.functional.cross_entropy(logits, targets)
        loss.backward()
        grads.append((loss.item(), h.grad, w.grad))
    assert sizes == [8, 8, 8, 8, 8, 8, 2]
    (loss, *own), (other, *others) = grads
    assert loss == pytest.approx(other, rel=1e-6)
    near = {"atol": 1e-7, "rtol": 1e-5} if dtype == "float32" else {"atol": 3e-3, "rtol": 0.02}
    assert all(torch.allclose(a, b, **near) for a, b in zip(own, others, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["dense", "top1"])
def test_layers_that_are_compiled_lose_the_same(shape: str, job: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU compiles can be traced, gradients and the experts' balance too; kernels are PyTorch's own here."""
    inductor = torch.compile
    monkeypatch.setattr(torch, "compile", lambda f, **more: inductor(f, backend="aot_eager", **more))
    given = job(shape, precision="bf16", **SMOOTH_RATE)
    compiled, plain = worker.Training(given), worker.Training(given)
    compiled.compile()
    monkeypatch.setattr(torch._dynamo.config, "suppress_errors", False)
    for _ in range(4):
        compiled.advance()
        plain.advance()
    assert compiled.losses == pytest.approx(plain.losses, abs=1e-2)
    assert compiled.score(compiled.validation) == pytest.approx(plain.score(plain.validation), abs=1e-2)
    if shape == "top1":
        balances = [t._scores(t.batch, output_router_logits=True)[1].aux_loss for t in (compiled, plain)]
        assert balances[0].item() == pytest.approx(balances[1].item(), rel=1e-2)


@pytest.mark.parametrize("shape", ["dense", "top1", "top2"])
def test_a_step_can_be_captured_as_one_graph(shape: str, job: Jobs) -> None:
    """It reads no number of a tensor and has no shape that depends on one: under fake tensors, which have no numbers."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    if version("transformers") < "5" and shape != "dense":
        pytest.skip("transformers 4 runs experts one by one")
    training = worker.Training(job(shape, precision="bf16"))
    with FakeTensorMode(allow_non_fake_inputs=True):
        training._step()
    assert training.loss.shape == ()


def test_a_step_that_cannot_be_captured_runs_as_before(job: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    """As here, where there is no GPU."""
    training = worker.Training(job("dense"))
    assert training._captured() == training._step
    assert "no CUDA graph: " in capsys.readouterr().err
    assert "graph" not in training.engine


def test_a_gpu_takes_more_tokens_of_small_models_at_once(job: Jobs, corpus: Corpus, tmp_path: Path) -> None:
    """Which changes nothing that a checkpoint depends on."""
    recipe = load_recipe("small").model_copy(update={"tokens": 1e6, "sequence_length": 128, "global_batch": 1024})
    for shape, tokens in (({}, 65_536), ({"depth": 16, "width": 1024}, 21_888), ({"depth": 24, "width": 4096}, 16_384)):
        model = Model("a", "", one({**SHAPE, **shape}), byte_level(), recipe, Workload(1, 128, 1), False, 0)
        both = [
            job_settings(Job("a-0-t6-s0", model), How(device, "bf16", 1, 2, 1e9), corpus, tmp_path)
            for device in ("cpu", "cuda")
        ]
        assert [given["micro_batch"] * 128 for given in both] == [16_384, tokens]
        assert both[0]["identity"] == both[1]["identity"]


def test_balance_is_in_no_loss_that_is_told(job: Jobs) -> None:
    """The auxiliary loss changes the training, and is in neither the training's nor the validation's loss."""
    with_it, without = worker.Training(job("top2")), worker.Training(job("top2", auxiliary_loss=0.0))
    assert with_it.score(with_it.validation) == without.score(without.validation)
    for training in (with_it, without):
        training.advance()
    assert with_it.losses == without.losses
    assert with_it.score(with_it.validation) != without.score(without.validation)


def test_order_of_the_data(job: Jobs) -> None:
    """Every sequence once an epoch, in an order of the data's hash, the seed and the length, whatever the model is."""
    given = job("dense")
    one_way, other = (worker.Sequences(given["data"], 32) for _ in range(2))
    n = one_way.count
    first = [one_way.drawn(i, 0) for i in range(2 * n)]
    assert sorted(first[:n]) == sorted(first[n:]) == list(range(n))
    assert first[:n] != first[n:]
    assert [other.drawn(i, 0) for i in reversed(range(2 * n))] == first[::-1]
    assert [other.drawn(i, 1) for i in range(n)] != first[:n]
    sequence = one_way.at([3])[0].tolist()
    assert sequence == np.fromfile(given["data"]["path"], dtype="<u2")[96:129].tolist()


def test_learning_rates(job: Jobs) -> None:
    """Up to the peak, then down to the final rate, which the last step has."""
    given = job("dense", steps=100)
    rates = [worker.rate_at(given, step) for step in range(100)]
    assert rates[given["warmup_steps"] - 1] == given["peak"] == max(rates)
    assert rates[-1] == pytest.approx(given["final"])


@pytest.mark.parametrize("shape", ["dense", "top1", "top2"])
def test_going_on_gives_the_same_losses(shape: str, job: Jobs, tmp_path: Path) -> None:
    """Stopped after every step and gone on with, bit for bit; the same seed gives the same curve, another another."""
    whole = worker.train(job(shape))
    curve = (tmp_path / CURVES / f"{shape}-0-t6-s0.csv").read_text()
    Path(job(shape)["checkpoint"]).unlink()
    stop = tmp_path / UNFINISHED / "stop"
    stop.touch()
    states = [worker.train(job(shape))["state"] for _ in range(5)]
    assert states == ["stopped"] * 5
    stop.unlink()
    again = worker.train(job(shape))
    assert again["loss"] == whole["loss"]
    assert (tmp_path / CURVES / f"{shape}-0-t6-s0.csv").read_text() == curve
    assert len(curve.splitlines()) == 7
    assert worker.train(job(shape, seed=1))["loss"] != whole["loss"]


def test_a_loss_on_the_way_is_a_shorter_trainings(job: Jobs, tmp_path: Path) -> None:
    """At a constant rate, interrupted or not, and the loss at the end is the same with and without."""
    constant = {"warmup_steps": 0, "last_steps": 1, "final": job("dense")["peak"]}
    short = worker.train(job("dense", steps=2, **constant) | {"identity": "short"})["loss"]
    plain = worker.train(job("dense", **constant) | {"identity": "plain"})["loss"]
    given = job("dense", between_steps=[2], **constant) | {"identity": "way"}
    whole = worker.train(given)
    assert (whole["between"], whole["loss"]) == ([short], plain)
    Path(given["checkpoint"]).unlink()
    (tmp_path / UNFINISHED / "stop").touch()
    for _ in range(4):
        worker.train(given)
    (tmp_path / UNFINISHED / "stop").unlink()
    assert worker.train(given)["between"] == [short]


def test_another_trainings_checkpoint_is_not_taken(job: Jobs) -> None:
    """A checkpoint of other settings, or half of one, begins again."""
    given = job("dense")
    loss = worker.train(given)["loss"]
    held = Path(given["checkpoint"]).read_bytes()
    Path(given["checkpoint"]).write_bytes(held[: len(held) // 2])
    assert worker.train(given)["loss"] == loss
    other = worker.Training(given | {"identity": "another"})
    assert other.step == 0


@pytest.mark.parametrize(("changed", "said"), [({"peak": 1e30, "gradient_clip": 1e30}, "loss "), ({"std": 40.0}, "")])
def test_divergence(changed: dict[str, float], said: str, job: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss that is no number, or stays worse than knowing nothing, ends the training and says so."""
    monkeypatch.setattr(worker, "PATIENCE", 3)
    found = worker.train(job("dense", steps=20, warmup_steps=0, **changed))
    assert found["state"] == "diverged", found
    assert said in found["reason"]


def test_no_space(job: Jobs) -> None:
    """A checkpoint that cannot be written says where and why."""
    with pytest.raises(worker.Unwritable, match="No space left on device"):
        worker.replace(
            "/dev/full/x" if False else str(_full(job)), lambda file: torch.save({"a": torch.zeros(9)}, file)
        )


def _full(job: Jobs) -> Path:
    """A name whose temporary file is a device that is always full."""
    path = Path(job("dense")["checkpoint"]).with_name("c")
    os.symlink("/dev/full", f"{path}.part")
    return path


def command(folder: Path, *more: str) -> list[str]:
    """`train` of two small candidates, a checkpoint a step."""
    flags = ["--data", str(folder / "text.txt"), "--tokens", "4096", "--sequence-length", "32", "--batch", "2"]
    flags += ["--eval-tokens", "512", "--checkpoint-every", "0", "--workers", "2", "--threads", "1", *more]
    return [sys.executable, "-m", "plas_train", str(folder / "list.csv"), *flags]


def losses(folder: Path) -> dict[str, str]:
    """Losses by the name of the training, as they are written."""
    return {row["run"]: row["loss"] for row in csv.DictReader((folder / "trainings.csv").open())}


@pytest.mark.slow
def test_killed_and_gone_on_with(tmp_path: Path) -> None:
    """Killed at any moment, the same command with --resume gives the same losses and curves bit for bit."""
    (tmp_path / "text.txt").write_text("".join(f"{i} times {i} is {i * i}\n" for i in range(600)))
    (tmp_path / "list.csv").write_text(
        "id,depth,width,head_dim,n_kv_heads,n_experts,expert_ffn_ratio\na,2,32,16,1,1,2\nb,2,32,16,1,4,2\n"
    )
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run(command(tmp_path, "--out", str(whole), "--quiet"), check=True)
    dice = random.Random(0)
    for _ in range(4):
        process = subprocess.Popen(command(tmp_path, "--out", str(cut), "--resume", "--quiet"), start_new_session=True)
        before, until = _progress(cut), time.monotonic() + 120.0
        while process.poll() is None and _progress(cut) == before and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(dice.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command(tmp_path, "--out", str(cut), "--resume", "--quiet"), check=True)
    assert losses(cut) == losses(whole)
    assert len(losses(cut)) == 2
    for name in losses(whole):
        ours, theirs = ((each / "curves" / f"{name}.csv").read_text() for each in (cut, whole))
        assert ours == theirs
    assert all(math.isfinite(float(loss)) for loss in losses(cut).values())


def _progress(folder: Path) -> dict[str, int]:
    """Checkpoints and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("unfinished/*.pt")}


@pytest.mark.slow
def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C is one line that says how to go on, exit code 130, with checkpoints written."""
    (tmp_path / "text.txt").write_text("".join(f"{i} times {i} is {i * i}\n" for i in range(600)))
    (tmp_path / "list.csv").write_text("id,depth,width,head_dim,n_kv_heads,expert_ffn_ratio\na,2,32,16,1,2\n")
    asked = command(tmp_path, "--out", str(tmp_path / "out"), "--tokens", "10000000")
    process = subprocess.Popen(asked, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible)
    until = time.monotonic() + 120.0
    while not list((tmp_path / "out").glob("unfinished/*.pt")) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "The same command with --resume goes on" in said
    assert "Traceback" not in said
    assert list((tmp_path / "out").glob("unfinished/*.pt"))
