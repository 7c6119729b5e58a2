"""Sustained rates of a machine: matrix products per precision and products of model-sized matrices with a vector.

Needs nothing but torch. Reads `{"torch_device", "threads", "seconds"}` as JSON from standard input, prints one
line of JSON. The matrices of the vector products together exceed any cache, as a model's weights do.
"""

import json
import sys
import time

import torch

SIZE = {"cpu": 2048, "cuda": 8192}
VECTOR_BYTES = {"cpu": 512 << 20, "cuda": 4 << 30}


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
    """Operations per second of square matrix products, by precision; what the machine cannot do is left out."""
    n, found = SIZE[place], {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)):
        a, b = torch.ones(n, n, dtype=dtype, device=place), torch.ones(n, n, dtype=dtype, device=place)
        found[name] = 2.0 * n**3 * rate(lambda a=a, b=b: a @ b, place, seconds)
    try:
        a, b = (torch.ones(n, n, dtype=torch.int8, device=place) for _ in range(2))
        found["int8"] = 2.0 * n**3 * rate(lambda: torch._int_mm(a, b), place, seconds)
    except (RuntimeError, AttributeError):
        pass
    return found


def reading(place, seconds):
    """Bytes per second at which vector products read 4,096 × 4,096 matrices, one after the other."""
    dtype = torch.float16 if place == "cuda" else torch.float32
    width = torch.finfo(dtype).bits // 8
    count = VECTOR_BYTES[place] // (4096 * 4096 * width)
    weights = [torch.ones(4096, 4096, dtype=dtype, device=place) for _ in range(count)]
    vector = torch.ones(4096, dtype=dtype, device=place)
    return count * 4096 * 4096 * width * rate(lambda: [w @ vector for w in weights], place, seconds)


@torch.inference_mode()
def measure(job):
    """All rates; `prefill_ms` and `decode_ms` are the seconds spent on each kind, as every worker reports."""
    torch.set_num_threads(job["threads"])
    place = job["torch_device"]
    begin = time.perf_counter()
    found = products(place, job["seconds"])
    middle = time.perf_counter()
    bandwidth = reading(place, job["seconds"])
    memory = torch.cuda.get_device_properties(0).total_memory if place == "cuda" else 0
    return {
        "prefill_ms": [1e3 * (middle - begin)],
        "decode_ms": [1e3 * (time.perf_counter() - middle)],
        "rates": found,
        "bandwidth": bandwidth,
        "memory": memory,
        "name": torch.cuda.get_device_name(0) if place == "cuda" else "",
        "engine": f"torch {torch.__version__}",
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))
