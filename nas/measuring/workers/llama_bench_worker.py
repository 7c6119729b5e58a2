"""Measure one GGUF file with llama.cpp's llama-bench; needs nothing but that program.

Reads a job as JSON from standard input and prints one line of JSON, as `torch_worker.py` beside it does. The context
that decoding starts from is the prompt (-d), so that steps are measured where the job asks for them.
"""

import json
import subprocess
import sys
import time


def arguments(job):
    """llama-bench's command line: prefill of S_in, and S_out tokens after a context of S_in."""
    threads = ["-t", str(job["threads"])] if job["threads"] else []
    common = [job["program"], "-m", job["model_file"], "-r", str(job["repetitions"]), "-o", "json", *threads]
    prefill = [*common, "-p", str(job["input_tokens"]), "-n", "0"]
    decode = [*common, "-p", "0", "-n", str(job["output_tokens"]), "-d", str(job["input_tokens"])]
    return prefill, decode


def samples(command):
    """Milliseconds of every repetition (llama-bench warms up by itself), and the build."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"llama-bench ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    (entry,) = json.loads(done.stdout)
    return [ns / 1e6 for ns in entry["samples_ns"]], str(entry.get("build_commit", "unknown"))


def measure(job):
    """Both phases, one after the other."""
    if job["batch"] != 1:
        raise SystemExit("llama-bench measures one sequence; use --batch 1")
    begin = time.perf_counter()
    (prefill, build), (decode, _) = map(samples, arguments(job))
    return {
        "prefill_ms": prefill,
        "decode_ms": [ms / job["output_tokens"] for ms in decode],
        "wall_s": time.perf_counter() - begin,
        "cpu_s": 0.0,
        "threads": 0,
        "engine": f"llama-bench {build}",
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))
