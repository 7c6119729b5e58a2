"""Train one candidate; needs torch, transformers and numpy.

Reads a job as JSON from standard input. Prints a line of JSON about once a second with how far it is, and its
result last: `state` ok, diverged, stopped (asked to, with a checkpoint), failed, unwritable or no_device.
"""

import json
import math
import os
import sys
import time
from contextlib import nullcontext
from functools import partial

import numpy as np
import torch
from torch.nn import functional
from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward

SAY_S = 1.0  # seconds between two lines of progress
SMOOTH = 0.98  # of the running average that tells divergence
MARGIN = 1.0  # nats above ln V: worse than knowing nothing
PATIENCE = 100  # steps in a row above it
VALIDATION_TOKENS = 8192  # scored at once
KEPT, SERIES = ("step", "seconds", "average", "above"), ("losses", "rates", "validated", "between")  # in a checkpoint
RESIDUAL = ("o_proj", "down_proj")  # what ends a residual branch
LOGITS = {"cpu": 2**25, "cuda": 2**28}  # fp32 logits that are held at once
COMPILED_FROM = 4e15  # FLOP of a training whose layers are worth compiling on a GPU, which takes about half a minute
EAGER_STEPS = 3  # on a GPU, before the step is captured as a CUDA graph
ALIGNED = 8  # rows of a grouped product are multiples of 16 bytes


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
    config = AutoConfig.for_model(**job["config"])
    windows = "sliding_attention" in (getattr(config, "layer_types", None) or ())
    AttentionInterface.register("causal", sdpa_attention_forward)  # of this name a graph's capture makes no mask
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa" if windows else "causal").float()
    if getattr(model.config, "_experts_implementation", None):
        model.set_experts_implementation("eager")  # batched_mm trains 54 times slower
    if hasattr(functional, "grouped_mm") and (job["device"] == "cpu" or job["precision"] == "bf16"):
        for module in model.modules():
            if hasattr(module, "gate_up_proj") and not any(n % ALIGNED for n in module.down_proj.shape[1:]):
                module.forward = partial(chosen_experts, module)
    count = sum(parameter.numel() for parameter in model.parameters())
    if count != job["params_total"]:
        raise ValueError(f"parameters: expected {job['params_total']:,} as exported, got {count:,}")
    initialise(model, job)
    return model


class Reordered(torch.autograd.Function):
    """Rows in an order whose inverse is `back`: the gradient is a selection too, where PyTorch's own would add row by row."""

    @staticmethod
    def forward(ctx, rows, order, back):
        ctx.save_for_backward(back)
        return rows[order]

    @staticmethod
    def backward(ctx, slopes):
        return slopes[ctx.saved_tensors[0]], None, None


class Grouped(torch.autograd.Function):
    """Rows (T, d) sorted by expert times each expert's matrix (E, o, d): (T, o). `ends` says where each expert's rows end, (E,)."""

    @staticmethod
    def forward(ctx, rows, weight, ends, dtype):
        rows, narrow = rows.to(dtype), weight.to(dtype)
        ctx.save_for_backward(rows, narrow, ends)
        ctx.dtype = weight.dtype
        return functional.grouped_mm(rows, narrow.transpose(1, 2), offs=ends)

    @staticmethod
    def backward(ctx, slopes):
        (rows, weight, ends), slopes = ctx.saved_tensors, slopes.contiguous()
        of_weight = functional.grouped_mm(slopes.T, rows, offs=ends)
        if rows.is_cuda:  # where a product of no rows may hold anything
            of_weight.masked_fill_((ends.diff(prepend=ends.new_zeros(1)) == 0)[:, None, None], 0.0)
        return functional.grouped_mm(slopes, weight, offs=ends), of_weight.to(ctx.dtype), None, None


def chosen_experts(experts, hidden, chosen, weights):
    """Tokens (T, d) through the experts chosen for each, (T, K), and no others, added by their weights (T, K)."""
    place, count = hidden.device, chosen.shape[1]
    dtype = torch.get_autocast_dtype(place.type) if torch.is_autocast_enabled(place.type) else hidden.dtype
    ids, order = chosen.flatten().sort(stable=True)
    back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=place))
    ends = torch.searchsorted(ids, torch.arange(experts.num_experts, device=place), right=True, out_int32=True)
    rows = Reordered.apply(hidden.to(dtype)[:, None].expand(-1, count, -1).flatten(0, 1), order, back)
    gate, up = Grouped.apply(rows, experts.gate_up_proj, ends, dtype).chunk(2, dim=-1)
    out = Grouped.apply(experts.act_fn(gate) * up, experts.down_proj, ends, dtype)
    out = Reordered.apply(out, back, order).unflatten(0, (-1, count))
    return (out * weights[..., None]).sum(1).to(hidden.dtype)


def of_chunk(hidden, weight, targets):
    """Summed cross entropy of some tokens (fp64), and its gradient by their logits in the format of the products."""
    logits = (hidden @ weight.T).float()
    over = logits.logsumexp(-1, keepdim=True)
    total = (over - logits.gather(1, targets)).double().sum()
    return total, (logits - over).exp_().scatter_add_(1, targets, -torch.ones_like(over)).to(hidden.dtype)


class HeadLoss(torch.autograd.Function):
    """Summed cross entropy of tokens (T, d) through the head (V, d): the logits of a chunk of tokens are held, then its gradients."""

    @staticmethod
    def forward(ctx, hidden, weight, targets, dtype, chunk, learning):
        most = 1 << (LOGITS[hidden.device.type] // len(weight)).bit_length() - 1
        narrow, total = weight.to(dtype), 0.0
        of_hidden, of_weight = (torch.empty_like(hidden), torch.zeros_like(weight)) if learning else (hidden, weight)
        for start in range(0, len(hidden), most):
            rows = slice(start, start + most)
            part = hidden[rows].to(dtype)
            loss, slopes = chunk(part, narrow, targets[rows, None])
            total = total + loss
            if learning:
                of_hidden[rows] = slopes @ narrow
                of_weight += slopes.T @ part
        ctx.save_for_backward(of_hidden, of_weight)
        return total

    @staticmethod
    def backward(ctx, slope):
        of_hidden, of_weight = ctx.saved_tensors
        return of_hidden * slope, of_weight * slope, None, None, None, None


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
    betas, cuda = (job["beta1"], job["beta2"]), job["device"] != "cpu"
    rate = torch.tensor(job["peak"], device=job["device"]) if cuda else job["peak"]
    return torch.optim.AdamW(groups, lr=rate, betas=betas, eps=job["epsilon"], fused=True, capturable=cuda)


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
        self.cuda, self.engine = self.place.type == "cuda", f"torch {torch.__version__}"
        if self.cuda:
            torch.cuda.set_stream(
                torch.cuda.Stream(self.place)
            )  # a graph is captured on the stream that its work ran on before
        torch.manual_seed(job["seed"])
        self.model = built(job).to(self.place).train()
        self.model.lm_head.forward = lambda hidden: hidden  # HeadLoss multiplies
        self.chunk = of_chunk
        if self.cuda and job["flops"] >= COMPILED_FROM:
            self.compile()
        self.optimiser = optimiser_of(self.model, job)
        self.sparse = bool(job["config"].get("num_experts"))
        self.data = Sequences(job["data"], job["sequence_length"])
        self.validation = Sequences(job["validation"], job["sequence_length"])
        self.step, self.seconds = 0, 0.0
        self.average, self.above = None, 0
        self.losses, self.rates, self.validated, self.between = [], [], [], []
        self.ceiling = math.log(job["config"]["vocab_size"]) + MARGIN
        self._load()
        self.batch = torch.zeros(job["global_batch"], job["sequence_length"] + 1, dtype=torch.long, device=self.place)
        self.run, self.eager, self.coming = self._step, EAGER_STEPS, self._read()

    def compile(self):
        """Compile a layer, which stands for all, and the chunk of the head; what cannot be compiled runs as it is."""
        torch._dynamo.config.suppress_errors = True
        for layer in self.model.base_model.layers:
            layer.compile(dynamic=False)
        self.chunk = torch.compile(of_chunk, dynamic=False)
        self.engine += ", compiled"

    def _read(self):
        """The sequences of the coming step, on the host."""
        batch = self.data.batch(self.step, self.job["global_batch"], self.job["seed"])
        return batch.pin_memory() if self.cuda else batch

    def _scores(self, sequences, **more):
        """Summed cross entropy of the predicted tokens and the model's output."""
        bf16 = self.job["precision"] == "bf16"
        with torch.autocast(self.place.type, torch.bfloat16, enabled=bf16):
            out = self.model(input_ids=sequences[:, :-1], use_cache=False, **more)
        hidden, dtype = out.logits.flatten(0, 1), torch.bfloat16 if bf16 else torch.float32
        how = (dtype, self.chunk, torch.is_grad_enabled())
        return HeadLoss.apply(hidden, self.model.lm_head.weight, sequences[:, 1:].flatten(), *how), out

    def _step(self):
        """Change the weights by the batch, and keep its mean loss without auxiliary terms on the device."""
        job, losses = self.job, []
        self.optimiser.zero_grad(set_to_none=True)
        for part in self.batch.split(job["micro_batch"]):
            total, out = self._scores(part, **({"output_router_logits": True} if self.sparse else {}))
            mean = total / (job["global_batch"] * job["sequence_length"])
            balance = job["auxiliary_loss"] * len(part) / len(self.batch) * out.aux_loss if self.sparse else 0.0
            (mean + balance).backward()
            losses.append(mean.detach())
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), job["gradient_clip"])
        self.optimiser.step()
        self.loss = torch.stack(losses).sum()

    def _captured(self):
        """The whole step as one CUDA graph; kernel by kernel as before where something in it waits for the GPU."""
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
                self._step()
        except RuntimeError as error:
            print(f"no CUDA graph: {str(error).splitlines()[0]}", file=sys.stderr)
            return self._step
        self.engine += ", CUDA graph"
        return graph.replay

    def advance(self):
        """One step of the optimiser; the loss that is kept has no auxiliary term."""
        rate = rate_at(self.job, self.step)
        for group in self.optimiser.param_groups:
            group["lr"] = group["lr"].fill_(rate) if self.cuda else rate
        self.batch.copy_(self.coming, non_blocking=True)
        if self.cuda and self.eager == 0:
            self.run = self._captured()
        self.eager -= 1
        self.run()
        self.step += 1
        self.coming = self._read()  # while the GPU works
        loss = float(self.loss)
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
        with torch.compiler.set_stance("force_eager") if self.chunk is not of_chunk else nullcontext():
            for start in range(0, sequences.count, at_once):
                rows = range(start, min(start + at_once, sequences.count))
                total += float(self._scores(sequences.at(rows).to(self.place))[0])
        self.model.train()
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
        found["optimiser"]["param_groups"] = self.optimiser.state_dict()["param_groups"]  # as this device needs them
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
    common = {"seconds": time.monotonic() - begin, "engine": training.engine}
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
