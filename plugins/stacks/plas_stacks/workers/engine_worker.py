"""Convert, check or time a model in one engine; run by the Python that has it.

Reads a job as JSON from standard input and prints one line of JSON. `<engine>_worker.py` beside it says how an engine does it:
`convert(job)` writes `file` from the Hugging Face folder `hf` in the format `precision`, `matrices(job)` counts the elements of matrices in
it, `first_logits(job, ids)` are those after a prompt, `load(job)` opens it for `threads`, `input_tokens` and `output_tokens`,
`generated(loaded, job)` counts tokens that it generates, and `repetition(loaded, job)` gives the milliseconds of one prefill and of the
mean decode step after it.
"""

import importlib
import json
import os
import sys
import time
from importlib.metadata import version

PROMPT, NEW = 32, 16  # tokens that are read in a check, and generated


def memory(name):
    """Bytes of this process by their name in Linux: VmRSS held now, VmHWM at most so far; 0 where the system does not say."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next((1024 * int(line.split()[1]) for line in file if line.startswith(name)), 0)
    except OSError:
        return 0


def convert(engine, job):
    """Write the file."""
    engine.convert(job)
    return {"bytes": os.path.getsize(job["file"])}


def check(engine, job):
    """Parameters of the file, tokens that it generates, and how far its first logits are from transformers', by their spread.

    Vectors are counted as transformers has them: converters fold norms into matrices, or store equal ones once.
    """
    import torch
    from transformers import AutoModelForCausalLM

    job |= {"threads": 1, "input_tokens": PROMPT, "output_tokens": NEW}
    ids = [(7 * i + 3) % job["vocabulary"] for i in range(PROMPT)]
    with torch.inference_mode():
        model = AutoModelForCausalLM.from_pretrained(job["hf"], dtype=torch.float32).eval()
        theirs = model(torch.tensor([ids])).logits[0, -1]
    ours = torch.tensor(engine.first_logits(job, ids))
    return {
        "parameters": sum(p.numel() for p in model.parameters() if p.ndim < 2) + engine.matrices(job),
        "generated": engine.generated(engine.load(job), job),
        "difference": float((ours - theirs).norm() / (theirs - theirs.mean()).norm()),
    }


def measure(engine, job):
    """Warm up, then repeat; everything the record keeps."""
    if not os.path.isfile(job["file"]):
        raise SystemExit(f"{job['file']}: expected a file of export --to {job['engine']}, got none; export it there")
    with open(os.path.join(os.path.dirname(job["file"]), "engine.json"), encoding="utf-8") as file:
        written = json.load(file)["precision"]
    if written != job["precision"]:
        raise SystemExit(f"{job['file']}: expected a file in {job['precision']}, got {written}; correct --precision")
    importlib.import_module(job["module"])
    base = memory("VmRSS")
    loaded = engine.load(job)
    for _ in range(job["warmup"]):
        engine.repetition(loaded, job)
    wall, cpu = time.perf_counter(), time.process_time()
    samples, requests = [], []
    for _ in range(job["repetitions"]):
        begin = time.monotonic()
        samples.append(engine.repetition(loaded, job))
        requests.append((begin, time.monotonic()))
    return {
        "requests_s": requests,
        "prefill_ms": [prefill for prefill, _ in samples],
        "decode_ms": [decode for _, decode in samples],
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "threads": job["threads"],
        "base_bytes": base,
        "peak_bytes": memory("VmHWM"),
    }


if __name__ == "__main__":
    # engines and converters print to standard output
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = json.load(sys.stdin)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # Python may be told to leave it out
    engine = importlib.import_module(f"{job['engine']}_worker")
    content = {"convert": convert, "check": check, "measure": measure}[job["task"]](engine, job)
    versions = {name: version(name) for name in job["packages"]}
    answer.write(
        "\n"
        + json.dumps(content | {"engine": f"{job['label']} {versions[job['packages'][-1]]}", "versions": versions})
        + "\n"
    )
    answer.flush()
    os._exit(0)  # some engines fail while Python ends
