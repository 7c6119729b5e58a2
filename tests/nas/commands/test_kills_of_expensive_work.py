"""What costs minutes, killed outright in the middle: fidelity steps, measurements; nothing paid for is lost or paid twice."""

import json
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

STEPS = """import time


def loss(architectures, *, fidelity):
    a = architectures
    time.sleep(0.05)
    with open("calls", "a") as file:
        file.write(f"{a.depth[0]}-{a.width[0]}-{a.n_experts[0]}-{a.top_k[0]}-{a.expert_ffn_ratio[0]}-{a.n_kv_heads[0]} {fidelity}\\n")
    return 1.7 + 40 / (a.depth * a.width * (1 + a.expert_ffn_ratio)) ** 0.3 + 4 / fidelity**0.3


loss.FIDELITIES = (1_000, 3_000, 10_000)
"""
SEARCH = ("--algo", "nsga2", "--param", "population=12", "--objectives", "stepped:loss,total_ms", "--evaluations", "24")
REST = ("--workers", "2", "--set", "baselines=[]", "--no-plots")
FILES = ("evaluations.csv", "frontier.csv", "steps.csv")
STAND_IN = f"""#!{sys.executable} -S
import json, sys, time
job = json.load(sys.stdin)
time.sleep(0.3)
with open("asked", "a") as file:
    file.write(str(job["architecture"]["depth"]))
print(json.dumps({{"prefill_ms": [3.0] * 3, "decode_ms": [1.0] * 3, "wall_s": 0.3, "cpu_s": 0.3, "threads": 1, "engine": "stand-in"}}))
"""
MEASURE = (
    "candidates.csv",
    "--device",
    "board",
    "--rounds",
    "4",
    "--threads",
    "1",
    "--input-tokens",
    "8",
    "--power",
    "none",
)


def lines(path: Path) -> int:
    """Whole lines of a file that grows."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def killed_at(process: "subprocess.Popen[str]", path: Path, count: int) -> None:
    """Kill a process outright as soon as a file has so many lines."""
    until = time.monotonic() + 120.0
    while process.poll() is None and lines(path) < count and time.monotonic() < until:
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_fidelity_steps_end_in_the_same_bytes_and_pay_for_no_step_twice(
    commands: Any, succeeded: Callable[..., str]
) -> None:
    """Two workers lose at most the two evaluations under way at each kill."""
    folder: Path = commands.folder
    (folder / "stepped.py").write_text(STEPS)
    succeeded(commands("run", *SEARCH, *REST, "--out", "whole"))
    calls = folder / "calls"
    paid = lines(calls)
    calls.unlink()
    killed_at(commands.start("run", *SEARCH, *REST, "--out", "cut"), calls, 9)
    killed_at(commands.start("run", "--resume", "cut"), calls, lines(calls) + 12)
    succeeded(commands("run", "--resume", "cut"))
    for name in FILES:
        assert (folder / "cut" / name).read_bytes() == (folder / "whole" / name).read_bytes(), name
    assert paid <= lines(calls) <= paid + 2 * 2


def test_a_killed_measurement_repeats_no_round(commands: Any, succeeded: Callable[..., str]) -> None:
    """Three candidates in four rounds; each kill costs the one process under way."""
    folder: Path = commands.folder
    (folder / "candidates.csv").write_text(
        "id,depth,width,head_dim,n_heads,n_kv_heads,n_experts,top_k,expert_size,vocabulary\n"
        + "".join(f"{depth},{depth},256,64,4,2,1,1,512,1000\n" for depth in (2, 3, 4))
    )
    program = folder / "python"
    program.write_text(STAND_IN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    asked, log = (*MEASURE, "--interpreter", str(program), "--out", "record"), folder / "record" / "samples.jsonl"
    for count in (2, 7):
        killed_at(commands.start("measure", *asked), log, count)
    succeeded(commands("measure", *asked))
    done = [(line["id"], line["round"]) for line in map(json.loads, log.read_text().splitlines())]
    assert sorted(done) == [(str(depth), turn) for depth in (2, 3, 4) for turn in (1, 2, 3, 4)]
    assert len((folder / "asked").read_text()) <= 12 + 2
