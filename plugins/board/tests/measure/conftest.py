"""A folder with candidates and a stand-in for an interpreter that has an engine."""

import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CANDIDATES = """id,depth,width,head_dim,n_heads,n_kv_heads,n_experts,top_k,expert_size,vocabulary
good,2,256,64,4,2,1,1,512,1000
bad,3,256,64,4,2,4,2,256,1000
"""
#: Stands in for an interpreter: answers for depth 2, fails for depth 3 as long as the file `broken` exists.
STAND_IN = f"""#!{sys.executable} -S
import json, os, sys
job = json.load(sys.stdin)
with open("asked", "a") as file:
    file.write(str(job["architecture"]["depth"]))
if job["architecture"]["depth"] == 3 and os.path.exists("broken"):
    sys.exit("cannot")
base = float(job["architecture"]["depth"])
print(json.dumps({{"prefill_ms": [3 * base, 2 * base, base], "decode_ms": [base] * 3, "wall_s": 1.0, "cpu_s": 0.2,
                  "threads": job["threads"], "engine": "stand-in"}}))
"""


@pytest.fixture
def folder(commands: Any) -> Path:
    """A folder with candidates and an interpreter of one's own."""
    found: Path = commands.folder
    (found / "candidates.csv").write_text(CANDIDATES)
    program = found / "python"
    program.write_text(STAND_IN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (found / "broken").touch()
    return found


@pytest.fixture
def measured(folder: Path, inside: Callable[..., Any]) -> Callable[..., Any]:
    """`measure` of the candidates with the stand-in."""

    def run(*flags: str) -> Any:
        settings = ("--device", "board", "--rounds", "2", "--threads", "1", "--input-tokens", "8", "--out", "record")
        return inside("measure", "candidates.csv", "--interpreter", str(folder / "python"), *settings, *flags)

    return run
