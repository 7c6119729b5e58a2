"""How fast `plas train`'s step is: on a CPU beside a plain loop, on a GPU as a share of its bf16 peak (6·N·tokens).

    python -m benchmarks.trainer                    milliseconds of processor time a step and the ratio to the plain loop, in pairs that take turns
    python -m benchmarks.trainer --device cuda      also the share of the peak that the data sheet of --chip gives

N are the parameters that a token passes: of the body, of chosen experts alone, and of the head. Needs the extra `hf`.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from nas.export.model import Model, Workload
from nas.export.recipe import load_recipe
from nas.export.tokenizer import byte_level
from nas.study.catalogue import load_device
from objectives.loss_law.features import feature
from plas_train.corpus import Corpus, Sources, prepared
from plas_train.jobs import AT_ONCE, CURVES, UNFINISHED, How, Job, job_settings
from search_spaces.architectures import Architectures, one

VOCABULARY, LENGTH = 257, 512
SMALL = {"depth": 4, "width": 128, "head_dim": 32, "n_kv_heads": 2, "vocabulary": VOCABULARY}
LARGE = {"depth": 12, "width": 512, "head_dim": 64, "n_kv_heads": 8, "vocabulary": VOCABULARY}
#: Shapes by device; on a GPU a body of 40 M parameters, dense and as 8 experts of which a token passes one.
SHAPES: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "cpu": {"dense": {**SMALL, "expert_size": 384}, "experts": {**SMALL, "expert_size": 384, "n_experts": 8}},
    "cuda": {"dense": {**LARGE, "expert_size": 1472}, "experts": {**LARGE, "expert_size": 1472, "n_experts": 8}},
}
BATCH = {"cpu": 4, "cuda": 128}  # sequences of a step
STEPS = {"cpu": 8, "cuda": 20}  # timed in one turn
TURNS, FIRST = 5, 6  # turns of each loop; steps before them, in which a GPU's are compiled and captured


class PlainTraining:
    """The loop that the trainer is held against: whole logits in fp32, PyTorch's cross entropy, transformers' experts, kernel by kernel."""

    def __init__(self, job: Mapping[str, Any], experts: str = "eager") -> None:
        import torch

        from plas_train.workers import train_worker

        worker: Any = train_worker
        self.job, self.worker, self.losses, self.step = job, worker, list[float](), 0
        torch.manual_seed(job["seed"])
        self.model = worker.built(job).to(job["device"])
        for module in self.model.modules():
            if "gate_up_proj" in dict(module.named_parameters(recurse=False)):
                module.__dict__.pop("forward", None)
        self.optimiser = worker.optimiser_of(self.model, job)
        self.sparse = bool(job["config"].get("num_experts"))
        if self.sparse and hasattr(self.model.config, "_experts_implementation"):
            self.model.set_experts_implementation(experts)
        self.data = worker.Sequences(job["data"], job["sequence_length"])

    def advance(self) -> None:
        """One step of the optimiser."""
        import torch

        job = self.job
        for group in self.optimiser.param_groups:
            group["lr"] = self.worker.rate_at(job, self.step)
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        losses = []
        for part in self.data.batch(self.step, job["global_batch"], job["seed"]).split(job["micro_batch"]):
            sequences = part.to(job["device"])
            with torch.autocast(torch.device(job["device"]).type, torch.bfloat16, enabled=job["precision"] == "bf16"):
                more = {"output_router_logits": True} if self.sparse else {}
                out = self.model(input_ids=sequences[:, :-1], use_cache=False, **more)
            logits = out.logits.float().flatten(0, 1)
            share = len(part) / job["global_batch"]
            mean = torch.nn.functional.cross_entropy(logits, sequences[:, 1:].flatten()) * share
            (mean + (job["auxiliary_loss"] * share * out.aux_loss if self.sparse else 0.0)).backward()
            losses.append(float(mean.detach()))
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), job["gradient_clip"])
        self.optimiser.step()
        self.step += 1
        self.losses.append(sum(losses))


def job_of(shape: Mapping[str, int], folder: Path, corpus: Corpus, device: str, batch: int, steps: int) -> Job:
    """A training of a shape over so many steps of so many sequences."""
    changed = {"tokens": float(steps * batch * LENGTH), "sequence_length": LENGTH, "global_batch": batch}
    recipe = load_recipe("small").model_copy(update=changed)
    return Job("timed-0-0-0", Model("timed", "", one(shape), byte_level(), recipe, Workload(1, LENGTH, 1), False, 0))


def passed(architecture: Architectures) -> float:
    """Parameters that a token passes: active ones of the body, and the head."""
    return float(feature(architecture, "active_parameters")[0]) + VOCABULARY * float(architecture.width[0])


def timed(advances: Mapping[str, Callable[[], None]], steps: int, cuda: bool) -> dict[str, list[float]]:
    """Seconds of a step of each loop in each turn, on a CPU of processor time; they take turns, so that a busy machine slows all alike."""
    import torch

    clock = time.perf_counter if cuda else time.process_time
    for advance in advances.values():
        for _ in range(FIRST):
            advance()
    seconds: dict[str, list[float]] = {name: [] for name in advances}
    for _ in range(TURNS):
        for name, advance in advances.items():
            begin = clock()
            for _ in range(steps):
                advance()
            if cuda:
                torch.cuda.synchronize()
            seconds[name].append((clock() - begin) / steps)
    return seconds


def lines(device: str, chip: str, threads: int) -> Iterator[str]:
    """A line for each shape."""
    import torch

    from plas_train.workers import train_worker

    worker: Any = train_worker
    torch.set_num_threads(threads)
    kind = device.partition(":")[0]
    batch, steps = BATCH[kind], STEPS[kind]
    how = How(device, "fp32" if kind == "cpu" else "bf16", threads, 1, float("inf"))
    with TemporaryDirectory() as place:
        folder = Path(place)
        for name in (CURVES, UNFINISHED):
            (folder / name).mkdir()
        corpus = prepared(folder, Sources(["stdlib"], [], {}, 65_536), byte_level(), lambda _: None)
        for name, shape in SHAPES[kind].items():
            asked = job_of(shape, folder, corpus, device, batch, 10_000)
            job = job_settings(asked, how, corpus, folder)
            ours = worker.Training(job)
            few = {**job, "micro_batch": min(job["micro_batch"], AT_ONCE // LENGTH)}
            advances = {"ours": ours.advance, "plain": PlainTraining(few, "grouped_mm").advance}
            seconds = timed(advances, steps, kind == "cuda")
            best = {loop: median(values) for loop, values in seconds.items()}
            ratios = sorted(a / b for a, b in zip(seconds["ours"], seconds["plain"], strict=True))
            rate = batch * LENGTH / best["ours"]
            share = ""
            if kind == "cuda":
                done = 6.0 * passed(asked.model.architecture) * rate
                share = f"; {done / load_device(chip).peak('fp16'):.1%} of the bf16 peak of {chip}"
            yield (
                f"{name}: {1e3 * best['ours']:.1f} ms a step, {rate:,.0f} tokens/s; {median(ratios):.2f} of the plain loop "
                f"({ratios[0]:.2f} to {ratios[-1]:.2f}); {ours.engine}{share}"
            )


def main() -> None:
    """Time what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument("--chip", default="h200", help="device whose data sheet gives the peak")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    for line in lines(given.device, given.chip, given.threads):
        print(line, flush=True)


if __name__ == "__main__":
    main()
