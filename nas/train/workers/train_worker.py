"""Train one candidate; needs torch, transformers and numpy.

Reads a job as JSON from standard input. Prints a line of JSON about once a second with how far it is, and its
result last: `state` ok, diverged, stopped (asked to, with a checkpoint), failed, unwritable or no_device.
"""

import json
import math
import os
import sys
import time
from functools import partial

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoConfig, AutoModelForCausalLM

SAY_S = 1.0  # seconds between two lines of progress
SMOOTH = 0.98  # of the running average that tells divergence
MARGIN = 1.0  # nats above ln V: worse than knowing nothing
PATIENCE = 100  # steps in a row above it
VALIDATION_TOKENS = 8192  # scored at once
KEPT, SERIES = ("step", "seconds", "average", "above"), ("losses", "rates", "validated", "between")  # in a checkpoint
DENSE_EXPERTS = 8  # so many compute every token on a GPU; more of them one after another
RESIDUAL = ("o_proj", "down_proj")  # what ends a residual branch


class Unwritable(Exception):
    """A file that cannot be written: no space left, a read-only folder."""


class Sequences:
    """Token ids of a file cut into sequences of S + 1 that overlap by one token; the rest is left out."""

    def __init__(self, told, length):
        self.ids = np.memmap(told["path"], dtype=told["dtype"], mode="r")
        self.length, self.count = length, (len(self.ids) - 1) // length
        self.digest, self.held, self.order = told["sha256"], None, np.zeros(0, dtype=np.int64)

    def at(self, numbers):
        """The sequences of some numbers, (n, S + 1)."""
        rows = [self.ids[n * self.length : (n + 1) * self.length + 1] for n in numbers]
        return torch.from_numpy(np.stack(rows).astype(np.int64))

    def drawn(self, number, seed):
        """Which sequence comes at a place of training: a function of the data's hash, the seed, S and the place."""
        epoch, place = divmod(number, self.count)
        if self.held != (epoch, seed):
            source = np.random.SeedSequence([int(self.digest[:32], 16), seed, self.length, epoch])
            self.order = np.random.Generator(np.random.Philox(source)).permutation(self.count)
            self.held = (epoch, seed)
        return int(self.order[place])

    def batch(self, step, size, seed):
        """The sequences of one step, (size, S + 1)."""
        return self.at([self.drawn(step * size + i, seed) for i in range(size)])


def built(job):
    """The model of the exported config with the recipe's initial weights; the same seed gives the same numbers.

    Raises:
        ValueError: another number of parameters than the export's.
    """
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**job["config"])).float()
    slow = {"batched_mm"} if job["device"] == "cpu" else {"batched_mm", "grouped_mm"}  # the latter is not cast to bf16
    if getattr(model.config, "_experts_implementation", None) in slow:
        model.set_experts_implementation("eager")  # batched_mm trains 54 times slower
    if job["device"] != "cpu":
        without_waiting(model)
    count = sum(parameter.numel() for parameter in model.parameters())
    if count != job["params_total"]:
        raise ValueError(f"parameters: expected {job['params_total']:,} as exported, got {count:,}")
    initialise(model, job)
    return model


def without_waiting(model):
    """Few experts compute every token at once: to ask the GPU which tokens are whose stops it once an expert."""
    for module in model.modules():
        if hasattr(module, "gate_up_proj") and module.num_experts <= DENSE_EXPERTS:
            module.forward = partial(every_expert, module)


def every_expert(experts, hidden, chosen, weights):
    """Tokens (T, d) through all experts, added by each token's shares: weights (T, K) of its chosen ones, (T, K), else 0."""
    shares = weights.new_zeros(len(hidden), experts.num_experts).scatter(1, chosen, weights)
    gate, up = torch.einsum("td,eod->eto", hidden, experts.gate_up_proj).chunk(2, dim=-1)
    found = torch.einsum("eto,edo->etd", experts.act_fn(gate) * up, experts.down_proj)
    return torch.einsum("etd,te->td", found, shares.to(found.dtype)).to(hidden.dtype)


@torch.no_grad()
def initialise(model, job):
    """Normal weights of the recipe's deviations; norms 1, biases 0."""
    generator = torch.Generator().manual_seed(job["seed"])
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
        elif "norm" in name:
            parameter.fill_(1.0)
        else:
            parameter.normal_(0.0, deviation(name, job), generator=generator)


def deviation(name, job):
    """The deviation of a tensor's initial weights: smaller where a residual branch ends, of experts their own."""
    if not any(part in name for part in RESIDUAL):
        return job["std"]
    return job["expert_std"] if "experts" in name else job["residual_std"]


def optimiser_of(model, job):
    """AdamW; decay of matrices only, as transformers' Trainer does."""
    matrices, vectors = ([p for p in model.parameters() if (p.ndim > 1) is wide] for wide in (True, False))
    groups = [{"params": matrices, "weight_decay": job["weight_decay"]}, {"params": vectors, "weight_decay": 0.0}]
    betas = (job["beta1"], job["beta2"])
    return torch.optim.AdamW(groups, lr=job["peak"], betas=betas, eps=job["epsilon"], fused=True)


def rate_at(job, step):
    """Learning rate of a step: linear warm-up to the peak, then a cosine whose last step has the final rate."""
    warmup = job["warmup_steps"]
    if step < warmup:
        return job["peak"] * (step + 1) / warmup
    share = (step + 1 - warmup) / max(1, job["steps"] - warmup)
    return job["final"] + (job["peak"] - job["final"]) * 0.5 * (1.0 + math.cos(math.pi * share))


class Training:
    """A training under way: everything that a checkpoint holds."""

    def __init__(self, job):
        self.job, self.place = job, torch.device(job["device"])
        torch.manual_seed(job["seed"])
        self.model = built(job).to(self.place)
        self.optimiser = optimiser_of(self.model, job)
        self.sparse = bool(job["config"].get("num_experts"))
        self.data = Sequences(job["data"], job["sequence_length"])
        self.validation = Sequences(job["validation"], job["sequence_length"])
        self.step, self.seconds = 0, 0.0
        self.average, self.above = None, 0
        self.losses, self.rates, self.validated, self.between = [], [], [], []
        self.ceiling = math.log(job["config"]["vocab_size"]) + MARGIN
        self._load()

    def _scores(self, sequences, **more):
        """Cross entropy of each predicted token and the model's output."""
        sequences = sequences.to(self.place)
        with torch.autocast(self.place.type, torch.bfloat16, enabled=self.job["precision"] == "bf16"):
            out = self.model(input_ids=sequences[:, :-1], use_cache=False, **more)
        logits = out.logits.float().flatten(0, 1)
        return functional.cross_entropy(logits, sequences[:, 1:].flatten(), reduction="none"), out

    def advance(self):
        """One step of the optimiser; the loss that is kept has no auxiliary term."""
        job = self.job
        rate = rate_at(job, self.step)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        losses = []
        for part in self.data.batch(self.step, job["global_batch"], job["seed"]).split(job["micro_batch"]):
            scores, out = self._scores(part, **({"output_router_logits": True} if self.sparse else {}))
            share = len(part) / job["global_batch"]
            mean = scores.mean() * share
            balance = job["auxiliary_loss"] * share * out.aux_loss if self.sparse else 0.0
            (mean + balance).backward()
            losses.append(mean.detach())
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), job["gradient_clip"])
        self.optimiser.step()
        self.step += 1
        loss = sum(map(float, losses))  # read last: on a GPU that waits for what was begun
        self.losses.append(loss)
        self.rates.append(rate)
        self.average = loss if self.average is None else SMOOTH * self.average + (1 - SMOOTH) * loss
        self.above = self.above + 1 if self.average > self.ceiling else 0

    @torch.no_grad()
    def score(self, sequences):
        """Mean cross entropy over every sequence of a file, nats per token, without auxiliary terms."""
        self.model.eval()
        at_once = max(1, min(VALIDATION_TOKENS // sequences.length, sequences.count))
        total = 0.0
        for start in range(0, sequences.count, at_once):
            rows = range(start, min(start + at_once, sequences.count))
            total += float(self._scores(sequences.at(rows))[0].double().sum())
        return total / (sequences.count * sequences.length)

    def diverged(self):
        """Why this training is given up, if it is."""
        if not math.isfinite(self.losses[-1]):
            return f"loss {self.losses[-1]} at step {self.step}"
        if self.above >= PATIENCE:
            return f"loss {self.average:.3f} at step {self.step}, above ln V + {MARGIN:g} for {PATIENCE} steps"
        return ""

    def save(self):
        """Write the checkpoint and the curve, each in one step, on the disk when this returns."""
        content = {
            "identity": self.job["identity"],
            **{name: getattr(self, name) for name in KEPT},
            **{name: torch.tensor(getattr(self, name), dtype=torch.float64) for name in SERIES},
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": torch.get_rng_state(),
        }
        replace(self.job["checkpoint"], lambda file: torch.save(content, file))
        self.write_curve()

    def _load(self):
        """Go on from the checkpoint, where there is a whole one of this very training."""
        try:
            found = torch.load(self.job["checkpoint"], map_location=self.place, weights_only=True)
        except Exception:
            return  # none, or none that is whole: begin again, which gives the same numbers
        if found.get("identity") != self.job["identity"]:
            return
        self.model.load_state_dict(found["model"])
        self.optimiser.load_state_dict(found["optimiser"])
        torch.set_rng_state(found["random"].cpu())
        for name in KEPT:
            setattr(self, name, found[name])
        for name in SERIES:
            setattr(self, name, found[name].tolist() if name in found else [])

    def write_curve(self):
        """Loss per step as CSV; the last evaluations on the validation set beside it."""
        tokens = self.job["global_batch"] * self.job["sequence_length"]
        first = self.step - len(self.validated)
        rows = ["step,tokens,learning_rate,loss,validation_loss"]
        for i, (rate, loss) in enumerate(zip(self.rates, self.losses, strict=True)):
            scored = repr(self.validated[i - first]) if i >= first else ""
            rows.append(f"{i + 1},{(i + 1) * tokens},{rate!r},{loss!r},{scored}")
        replace(self.job["curve"], lambda file: file.write(("\n".join(rows) + "\n").encode()))


def replace(path, write):
    """Replace a file in one step.

    Raises:
        Unwritable: no space left, a folder that cannot be written.
    """
    temporary = path + ".part"
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        if os.path.exists(temporary):
            os.remove(temporary)
        raise Unwritable(f"{path}: {reason}") from None


def train(job):
    """Train to the end or to the first reason to stop; the result."""
    training = Training(job)
    begin, spoken, saved = time.monotonic() - training.seconds, 0.0, time.monotonic()
    while training.step < job["steps"]:
        training.advance()
        if why := training.diverged():
            training.write_curve()
            return {"state": "diverged", "reason": why, "seconds": training.seconds}
        if training.step in job.get("between_steps", ()):
            training.between.append(training.score(training.validation))
        if training.step > job["steps"] - job["last_steps"]:
            training.validated.append(training.score(training.validation))
        now = time.monotonic()
        training.seconds = now - begin
        stop = os.path.exists(job["stop"])
        if stop or now - saved >= job["checkpoint_s"] or training.step == job["steps"]:
            training.save() if math.isfinite(job["checkpoint_s"]) else training.write_curve()
            saved = time.monotonic()
        if stop and training.step < job["steps"]:
            return {"state": "stopped"}
        if now - spoken >= SAY_S:
            print(json.dumps({"step": training.step, "steps": job["steps"], "loss": training.average}), flush=True)
            spoken = now
    return result(training, begin)


def result(training, begin):
    """The losses of a training that reached its end."""
    job = training.job
    loss = math.fsum(training.validated) / len(training.validated)
    texts = {name: training.score(Sequences(told, job["sequence_length"])) for name, told in job["texts"].items()}
    common = {"seconds": time.monotonic() - begin, "engine": f"torch {torch.__version__}"}
    if not math.isfinite(loss) or loss > training.ceiling:
        return {"state": "diverged", "reason": f"validation loss {loss:.3f} at the end", **common}
    return {"state": "ok", "loss": loss, "between": training.between, "texts": texts, **common}


def refused(job):
    """Why the chosen device cannot be used, None where it can."""
    if job["device"] == "cpu":
        return None
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (torch.device(job["device"]).index or 0) < count:
        return None
    return {"state": "no_device", "reason": f"{count} CUDA devices seen by torch {torch.__version__}"}


def answer(job):
    """Train, and say how it ended whatever happens."""
    torch.set_num_threads(job["threads"])
    torch.use_deterministic_algorithms(job["device"] == "cpu", warn_only=True)  # on a GPU they cost more than they keep
    try:
        return refused(job) or train(job)
    except Unwritable as error:
        return {"state": "unwritable", "reason": str(error)}
    except ValueError as error:
        return {"state": "failed", "reason": str(error).splitlines()[0][:300]}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))), flush=True)
