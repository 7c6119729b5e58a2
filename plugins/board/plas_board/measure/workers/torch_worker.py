"""Measure one architecture with random weights in PyTorch; needs nothing but torch.

Reads a job as JSON from standard input, prints one line of JSON: prefill and decode-step milliseconds
of every repetition, when each began and ended on the monotonic clock, CPU and wall seconds of the measured part, threads
and versions; on a GPU the most bytes that were allocated. With `graphs` what is timed are replays of two CUDA graphs, of the prefill and of the
decode step in the middle of the output.
"""

import json
import sys
import time

import torch
from torch.nn import functional

ALIGNED = 8  # 16-bit numbers in the 16 bytes that rows of a grouped product are multiples of
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def weight(*shape, **place):
    """Random weights of a size that keeps activations finite."""
    return torch.empty(*shape, **place).normal_(0.0, shape[-1] ** -0.5)


class Layer:
    """A decoder layer: attention with grouped KV heads, then a dense or sparse gated FFN."""

    def __init__(self, a, place):
        width, head = a["width"], a["head_dim"]
        self.heads, self.kv_heads, self.head, self.top_k = a["n_heads"], a["n_kv_heads"], head, a["top_k"]
        self.norms = [torch.ones(width, **place) for _ in range(2)]
        self.q, self.o = weight(self.heads * head, width, **place), weight(width, self.heads * head, **place)
        self.k, self.v = (weight(self.kv_heads * head, width, **place) for _ in range(2))
        sizes = {"no": None, "head": (head, head), "full": (self.heads * head, self.kv_heads * head)}[
            a.get("qk_norm", "head")
        ]
        self.qk_norms = [torch.ones(n, **place) for n in sizes] if sizes else [None, None]
        experts, size = a["n_experts"], a["expert_size"]
        aligned = width % ALIGNED == size % ALIGNED == 0
        self.grouped = place.get("device") == "cuda" and place["dtype"] is torch.bfloat16 and aligned
        self.router = weight(experts, width, **place) if experts > 1 else None
        self.gate, self.up = (weight(experts, size, width, **place) for _ in range(2))
        self.down = weight(experts, width, size, **place)
        shared = a.get("shared_expert_size", 0)
        self.shared = (
            [weight(*s, **place) for s in ((shared, width), (shared, width), (width, shared))] if shared else None
        )

    def forward(self, x, keys, values, start, angles):
        """x (B, S, d) at positions start…; keys and values (B, n_kv, S_max, d_h) are written."""
        y = functional.rms_norm(x, x.shape[-1:], self.norms[0])
        batch, length, _ = y.shape
        q = rotate(
            normed(y @ self.q.T, self.qk_norms[0]).view(batch, length, self.heads, self.head).transpose(1, 2), angles
        )
        k = rotate(
            normed(y @ self.k.T, self.qk_norms[1]).view(batch, length, self.kv_heads, self.head).transpose(1, 2), angles
        )
        v = (y @ self.v.T).view(batch, length, self.kv_heads, self.head).transpose(1, 2)
        end = start + length
        keys[:, :, start:end], values[:, :, start:end] = k, v
        attended = functional.scaled_dot_product_attention(
            q, keys[:, :, :end], values[:, :, :end], is_causal=length > 1, enable_gqa=self.heads != self.kv_heads
        )
        x = x + attended.transpose(1, 2).reshape(batch, length, -1) @ self.o.T
        y = functional.rms_norm(x, x.shape[-1:], self.norms[1])
        return x + self.ffn(y.reshape(-1, y.shape[-1])).view_as(y)

    def ffn(self, y):
        """Tokens (T, d) through the FFN, or each through its top-k experts."""
        if self.router is None:
            out = gated(y, self.gate[0], self.up[0], self.down[0])
        else:
            shares, chosen = functional.softmax(y @ self.router.T, -1).topk(self.top_k, -1)
            if self.grouped:
                out = self.at_once(y, shares, chosen)
                return out if self.shared is None else out + gated(y, *self.shared)
            out = torch.zeros_like(y)
            for expert in chosen.unique().tolist():
                token, slot = (chosen == expert).nonzero(as_tuple=True)
                part = gated(y[token], self.gate[expert], self.up[expert], self.down[expert])
                out.index_add_(0, token, part * shares[token, slot, None])
        return out if self.shared is None else out + gated(y, *self.shared)

    def at_once(self, y, shares, chosen):
        """The experts of tokens (T, d) by grouped products; how many each has stays on the GPU, so that nothing waits for it."""
        flat = chosen.flatten()
        order = flat.argsort()
        ends = (flat[:, None] == torch.arange(len(self.gate), device=y.device)).sum(0).cumsum(0).to(torch.int32)
        token = order // self.top_k
        x = y[token]
        inner = functional.silu(by_expert(x, self.gate, ends)) * by_expert(x, self.up, ends)
        part = by_expert(inner, self.down, ends) * shares.flatten()[order, None]
        return torch.zeros_like(y).index_add_(0, token, part)


def by_expert(x, weights, ends):
    """Rows of x (n, i), in the order of their experts, each by its expert's weights (E, o, i); `ends` (E,) where each expert's rows end."""
    return functional.grouped_mm(x, weights.transpose(-2, -1), offs=ends)


def normed(x, norm):
    """QK-norm: x (B, S, heads · d_h) over every n values, n weights in `norm`: each head, or all; None: as it is."""
    return (
        x
        if norm is None
        else functional.rms_norm(x.reshape(*x.shape[:2], -1, len(norm)), norm.shape, norm).reshape(x.shape)
    )


def gated(y, gate, up, down):
    """down(silu(gate y) · up y)."""
    return (functional.silu(y @ gate.T) * (y @ up.T)) @ down.T


def rotate(x, angles):
    """Rotary embedding of (B, heads, S, d_h) by cosines and sines (S, d_h)."""
    half = x.shape[-1] // 2
    return x * angles[0] + torch.cat((-x[..., half:], x[..., :half]), -1) * angles[1]


class Model:
    """Embedding, layers, head, and a KV cache for the whole job."""

    def __init__(self, job, place):
        a = job["architecture"]
        self.vocabulary, length = a["vocabulary"], job["input_tokens"] + job["output_tokens"]
        self.width = a["width"]
        self.table = weight(self.vocabulary, self.width, **place)
        self.head = self.table if a.get("tied", True) else weight(self.vocabulary, self.width, **place)
        self.layers = [Layer(a, place) for _ in range(a["depth"])]
        self.norm = torch.ones(self.width, **place)
        shape = (a["depth"], job["batch"], a["n_kv_heads"], length, a["head_dim"])
        self.keys, self.values = torch.zeros(shape, **place), torch.zeros(shape, **place)
        rates = 10_000.0 ** (-torch.arange(0, a["head_dim"], 2, device=place["device"]) / a["head_dim"])
        angles = torch.arange(length, device=place["device"])[:, None] * torch.cat((rates, rates))
        self.angles = angles.cos().to(place["dtype"]), angles.sin().to(place["dtype"])

    def step(self, tokens, start):
        """One pass over tokens (B, S) from a position; the next tokens (B, 1)."""
        x = self.table[tokens] if self.vocabulary else tokens
        angles = tuple(part[start : start + x.shape[1]] for part in self.angles)
        for i, layer in enumerate(self.layers):
            x = layer.forward(x, self.keys[i], self.values[i], start, angles)
        x = functional.rms_norm(x[:, -1:], x.shape[-1:], self.norm)
        return (x @ self.head.T).argmax(-1) if self.vocabulary else x


def prompt_of(model, job, place):
    """Random tokens (B, S), or vectors where there is no vocabulary."""
    shape = (job["batch"], job["input_tokens"])
    if model.vocabulary:
        return torch.randint(0, model.vocabulary, shape, device=place["device"])
    return torch.randn(*shape, model.width, **place)


def repetition(model, job, place):
    """Milliseconds of one prefill and of the mean decode step after it."""
    prompt = prompt_of(model, job, place)
    finish = torch.cuda.synchronize if place["device"] == "cuda" else lambda: None
    finish()
    begin = time.perf_counter()
    token = model.step(prompt, 0)
    finish()
    prefilled = time.perf_counter()
    for position in range(job["input_tokens"], job["input_tokens"] + job["output_tokens"]):
        token = model.step(token, position)
    finish()
    return 1e3 * (prefilled - begin), 1e3 * (time.perf_counter() - prefilled) / job["output_tokens"]


class Graphs:
    """The prefill and the decode step in the middle of the output as CUDA graphs."""

    def __init__(self, model, job, place):
        self.steps = job["output_tokens"]
        prompt = prompt_of(model, job, place)
        token = model.step(prompt, 0)
        self.prefill = captured(lambda: model.step(prompt, 0))
        self.decode = captured(lambda: model.step(token, job["input_tokens"] + self.steps // 2))

    def repetition(self):
        """Milliseconds of one prefill and of the mean of as many steps as the output has."""
        return replayed(self.prefill, 1), replayed(self.decode, self.steps)


def captured(call):
    """A graph of a call, which ran before as often as PyTorch asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def replayed(graph, times):
    """Milliseconds of a replay, the mean of so many one after another, by the GPU's own clock."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(times):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / times


@torch.inference_mode()
def measure(job):
    """Warm up, then repeat; everything the record keeps."""
    torch.manual_seed(job["seed"])
    torch.set_num_threads(job["threads"])
    place = {"dtype": DTYPES[job["precision"]], "device": job["torch_device"]}
    cuda, graphs = place["device"] == "cuda", job.get("graphs", False)
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    model = Model(job, place)
    repeat = Graphs(model, job, place).repetition if graphs else lambda: repetition(model, job, place)
    for _ in range(job["warmup"]):
        repeat()
    wall, cpu = time.perf_counter(), time.process_time()
    samples, requests = [], []
    for _ in range(job["repetitions"]):
        begin = time.monotonic()
        samples.append(repeat())
        requests.append((begin, time.monotonic()))
    return {
        "requests_s": requests,
        "prefill_ms": [prefill for prefill, _ in samples],
        "decode_ms": [decode for _, decode in samples],
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "threads": torch.get_num_threads(),
        **({"peak_bytes": torch.cuda.max_memory_allocated()} if cuda else {}),
        "engine": f"torch {torch.__version__} {job['torch_device']}{' graphs' if graphs else ''}",
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))
