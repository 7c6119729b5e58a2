"""Measure one GGUF file with llama.cpp's own benchmarks; needs nothing but those programs.

Reads a job as JSON from standard input and prints one line of JSON, as `torch_worker.py` beside it does. One sequence is
llama-bench's, several are llama-batched-bench's. The context that decoding starts from is the prompt, so that steps are measured where
the job asks for them.
"""

import json
import os
import resource
import subprocess
import sys
import time

#: How llama.cpp ends the description of a file in each format.
ENDINGS = {"f16": "F16", "q8_0": "Q8_0", "q6_k": "Q6_K", "q4_0": "Q4_0", "mxfp4": "MXFP4 MoE"}
ENDINGS |= {"q5_k_m": "Q5_K - Medium", "q4_k_m": "Q4_K - Medium"}


def common(job, program):
    """Program, file and threads."""
    return [program, "-m", job["model_file"], *(["-t", str(job["threads"])] if job["threads"] else [])]


def arguments(job):
    """llama-bench's command lines: prefill of S_in, and S_out tokens after a context of S_in."""
    asked = [*common(job, job["program"]), "-r", str(job["repetitions"]), "-o", "json"]
    prefill = [*asked, "-p", str(job["input_tokens"]), "-n", "0"]
    decode = [*asked, "-p", "0", "-n", str(job["output_tokens"]), "-d", str(job["input_tokens"])]
    return prefill, decode


def batch_arguments(job):
    """llama-batched-bench's command line: the batch once per warm-up and repetition, in one process."""
    batch, read, written = (job[name] for name in ("batch", "input_tokens", "output_tokens"))
    runs = ",".join([str(batch)] * (job["warmup"] + job["repetitions"]))
    lengths = ["-npp", str(read), "-ntg", str(written), "-npl", runs, "-c", str(batch * (read + written))]
    return [*common(job, job["batched_program"]), *lengths, "--output-format", "jsonl"]


def printed(command):
    """The output of a program; ends with its last lines where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{os.path.basename(command[0])} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def entry(job, command):
    """The only test of a llama-bench call, of a file in the format that the job names."""
    (found,) = json.loads(printed(command))
    kind = str(found["model_type"]).removesuffix(" (guessed)")
    if not kind.endswith(ENDINGS[job["precision"]]):
        raise SystemExit(f"{job['model_file']}: expected a file in {job['precision']}, got {kind}; correct --precision")
    return found


def one_sequence(job):
    """Milliseconds of every repetition of prefill and of a decode step (llama-bench warms up by itself), and the build."""
    prefill, decode = (entry(job, command) for command in arguments(job))
    step = [ns / 1e6 / job["output_tokens"] for ns in decode["samples_ns"]]
    return [ns / 1e6 for ns in prefill["samples_ns"]], step, prefill


def several_sequences(job):
    """The same of a batch: prefill of all its prompts, and a step of all its sequences."""
    known = entry(job, [*common(job, job["program"]), "-r", "1", "-o", "json", "-p", "1", "-n", "0"])
    lines = [line for line in printed(batch_arguments(job)).splitlines() if line.startswith("{")]
    runs = [json.loads(line) for line in lines][job["warmup"] :]
    if len(runs) != job["repetitions"]:
        raise SystemExit(f"llama-batched-bench: expected {job['repetitions']} runs, got {len(runs)}")
    return [1e3 * run["t_pp"] for run in runs], [1e3 * run["t_tg"] / job["output_tokens"] for run in runs], known


def busy_s() -> float | None:
    """Seconds that the machine's processors were busy so far, those stolen by others of its host too; None where not reported."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, *rest = map(int, file.readline().split()[1:9])
    except (OSError, ValueError):
        return None
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def own_s():
    """Seconds of processor time of this process and of the programs that it ran."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def measure(job):
    """Both phases, one after the other."""
    if not os.path.isfile(job["model_file"]):
        raise SystemExit(f"{job['model_file']}: expected a GGUF file, got none; export it there")
    cores = os.cpu_count() or 1
    threads = job["threads"] or cores
    begin, own, busy = time.perf_counter(), own_s(), busy_s()
    prefill, decode, known = (one_sequence if job["batch"] == 1 else several_sequences)(job)
    wall, spent, after = time.perf_counter() - begin, own_s() - own, busy_s()
    others = 0.0 if busy is None or after is None else max(0.0, after - busy - spent) / wall
    return {
        "prefill_ms": prefill,
        "decode_ms": decode,
        "wall_s": wall,
        "cpu_s": spent,
        "threads": threads,
        "taken_cores": max(0.0, others - (cores - threads)),
        "model_bytes": known.get("model_size"),
        "engine": f"llama-bench {known.get('build_commit', 'unknown')}",
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))
