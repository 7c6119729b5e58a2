"""Sustained rates of a machine: matrix products per precision, and how fast model-sized matrices are read.

Needs nothing but torch. Reads `{"torch_device", "threads", "seconds", "cache"}` as JSON from standard input, prints one
line of JSON. The matrices that are read together exceed any cache, as a model's weights do; with a `cache` of so many
bytes (0: none) one is read again and again that it holds.
"""

import json
import sys
import time
from itertools import pairwise

import torch

SIZE = {"cpu": 2048, "cuda": 8192}
SMALL, SMALL_SECONDS = {"cpu": 256, "cuda": 2048}, 0.05  # of the products that show which kernels are worth measuring
REFERENCE = 4.0  # times as long as single precision: no kernel for this machine, which no engine would run
READ_BYTES = {"cpu": 512 << 20, "cuda": 4 << 30}
MATRICES = {
    "cpu": 8,
    "cuda": 4,
}  # that share them: of 1 GiB on a GPU, which take 100 times as long as starting to read one
WIDTH = 4096  # columns of the matrices that are read
HELD = 0.25  # of the last-level cache: more than the caches before it hold, and what other programs leave of it


def rate(call, place, seconds):
    """Calls per second: the fastest of repetitions within so many seconds, after a warm-up."""
    finish = torch.cuda.synchronize if place == "cuda" else lambda: None
    call()
    finish()
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        finish()
        best = max(best, 1.0 / (time.perf_counter() - begin))
    return best


def products(place, seconds):
    """Operations per second of square matrix products, by precision, and how many times as long as single precision took what is left out.

    Left out is what the machine cannot do (without a number), and what torch does by kernels written for no machine in
    particular: small products tell, in a moment, where large ones would take a minute.
    """
    found, slow, small = {}, {}, {}
    for name in ("fp32", "bf16", "fp16", "int8"):
        try:
            small[name] = product(name, SMALL[place], place, SMALL_SECONDS)
        except (RuntimeError, AttributeError):
            continue
        if small["fp32"] > REFERENCE * small[name]:
            slow[name] = small["fp32"] / small[name]
        else:
            found[name] = product(name, SIZE[place], place, seconds)
    return found, slow


def product(name, n, place, seconds):
    """Operations per second of products of n × n matrices in one precision.

    Values are random, as equal ones take a GPU less power; the second matrix is held by outputs and read transposed, as linear layers
    hold their weights and as INT8 units of GPUs want it.
    """
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "int8": torch.int8}[name]
    a, b = (torch.randint(-100, 101, (n, n), device=place).to(dtype) for _ in range(2))
    multiply = torch._int_mm if name == "int8" else torch.matmul
    return 2.0 * n**3 * rate(lambda: multiply(a, b.t()), place, seconds)


def reading(place, seconds, rows, count):
    """Bytes per second at which `count` matrices of rows × 4,096 are read, one after the other, again and again.

    The fastest of their products with a vector, of their sums, and, of several, of copying one to the next, which moves each byte twice:
    each may have more arithmetic than the memory leaves time for, or a kernel that fills no large GPU.
    Values are random, so that no two pages are alike and none stands for several.
    """
    dtype = torch.float16 if place == "cuda" else torch.float32
    width = torch.finfo(dtype).bits // 8
    weights = [torch.rand(rows, WIDTH, dtype=dtype, device=place) for _ in range(count)]
    vector = torch.rand(WIDTH, dtype=dtype, device=place)
    products = rate(lambda: [w @ vector for w in weights], place, seconds)
    sums = rate(lambda: [w.sum() for w in weights], place, seconds)
    copies = rate(lambda: [b.copy_(a) for a, b in pairwise(weights)], place, seconds) if count > 1 else 0.0
    return rows * WIDTH * width * max(count * products, count * sums, 2 * (count - 1) * copies)


def from_memory(place, seconds):
    """Bytes per second from memory: matrices that together exceed any cache."""
    width, count = 2 if place == "cuda" else 4, MATRICES[place]
    return reading(place, seconds, READ_BYTES[place] // (count * WIDTH * width), count)


def from_cache(cache, seconds):
    """Bytes per second from a processor's last-level cache of `cache` bytes: one matrix of a quarter of them."""
    return reading("cpu", seconds, int(HELD * cache) // (4 * WIDTH), 1)


@torch.inference_mode()
def measure(job):
    """All rates; `prefill_ms` and `decode_ms` are the seconds spent on each kind, as every worker reports."""
    torch.set_num_threads(job["threads"])
    place = job["torch_device"]
    begin = time.perf_counter()
    found, slow = products(place, job["seconds"])
    middle = time.perf_counter()
    bandwidth = from_memory(place, job["seconds"])
    cached = from_cache(job["cache"], job["seconds"]) if job["cache"] and place == "cpu" else 0.0
    memory = torch.cuda.get_device_properties(0).total_memory if place == "cuda" else 0
    return {
        "prefill_ms": [1e3 * (middle - begin)],
        "decode_ms": [1e3 * (time.perf_counter() - middle)],
        "rates": found,
        "slow": slow,
        "bandwidth": bandwidth,
        "cache_bandwidth": cached,
        "memory": memory,
        "name": torch.cuda.get_device_name(0) if place == "cuda" else "",
        "engine": f"torch {torch.__version__}",
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))
