"""Comparisons killed at random moments and resumed, on any number of workers: the tables have the same bytes."""

import csv
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SEEDS, EVALUATIONS = 2, 60
SLOW = """\
import time

def cost(a):
    time.sleep(0.004 * len(a))
    return a.depth * a.width / 1e4 + 1 / (1 + a.n_kv_heads)
"""


def tables(folder: Path) -> dict[str, bytes]:
    """What must not differ."""
    return {path.name: path.read_bytes() for path in [*(folder / "tables").iterdir(), folder / "report.md"]}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, commands_in: Callable[[Path], Any], comparison_text: Any) -> Any:
    """A folder with a comparison over slow objectives of one's own, and the tables of an uninterrupted one."""
    commands = commands_in(tmp_path_factory.mktemp("kills"))
    commands.write("slow.py", SLOW)
    studies = {"mine": {"objectives": ["loss", "slow:cost"]}}
    commands.write(
        "small.yaml",
        comparison_text(algos=["nsga2"], seeds=SEEDS, evaluations=EVALUATIONS, studies=studies),
    )
    result = commands("compare", "--config", "small.yaml", "--out", "whole", "--workers", 2, "--quiet")
    assert result.returncode == 0, result.stderr
    return commands


def killed(commands: Any, folder: Path, moment: float, *arguments: object) -> None:
    """A comparison that is killed some seconds after its folder appeared, unless it has ended by itself."""
    process: subprocess.Popen[str] = commands.start("compare", *arguments, "--quiet")
    while process.poll() is None and not folder.exists():
        time.sleep(0.01)
    deadline = time.monotonic() + moment
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=60)


def killed_and_resumed(commands: Any, name: str, generator: random.Random) -> dict[str, bytes]:
    """One random moment, then to the end; the number of workers changes in between."""
    folder = commands.folder / name
    first = ("--config", "small.yaml", "--out", name, "--workers", generator.choice((1, 2)))
    killed(commands, folder, generator.uniform(0.0, 4.0), *first)
    begun = (folder / "comparison.yaml").exists()
    again = ("--resume", name) if begun else ("--config", "small.yaml", "--out", name)
    result = commands("compare", *again, "--workers", 2, "--quiet")
    assert result.returncode == 0, result.stderr
    return tables(folder)


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(2))
def test_killed_at_a_random_moment_and_resumed(small: Any, moment: int) -> None:
    generator = random.Random(100 + moment)
    assert killed_and_resumed(small, f"killed-{moment}", generator) == tables(small.folder / "whole")


@pytest.mark.extended
@pytest.mark.parametrize("moment", range(50))
def test_killed_at_fifty_random_moments_and_resumed(small: Any, moment: int) -> None:
    generator = random.Random(1000 + moment)
    assert killed_and_resumed(small, f"often-{moment}", generator) == tables(small.folder / "whole")


@pytest.mark.slow
def test_an_interruption_says_how_to_continue_and_leaves_no_worker(small: Any) -> None:
    process = small.start("compare", "--config", "small.yaml", "--out", "stopped", "--workers", 2)
    while not list((small.folder / "stopped").rglob("evaluations.sqlite")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Continue with: python -m nas.compare --resume stopped" in said
    assert "Traceback" not in said
    result = small("compare", "--resume", "stopped", "--workers", 1, "--quiet")
    assert result.returncode == 0, result.stderr
    assert tables(small.folder / "stopped") == tables(small.folder / "whole")


@pytest.mark.slow
def test_workers_end_with_a_killed_driver(small: Any) -> None:
    process = small.start("compare", "--config", "small.yaml", "--out", "orphans", "--workers", 2, "--quiet")
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not listed.exists():
        pytest.skip("no /proc here that lists a process's children")
    while not list((small.folder / "orphans").rglob("evaluations.sqlite")) and process.poll() is None:
        time.sleep(0.01)
    children = [Path(f"/proc/{pid}") for pid in listed.read_text().split()]
    assert len(children) >= 2
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 20
    while any(alive(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [child for child in children if alive(child)]


def alive(process: Path) -> bool:
    """Whether a process still runs; one that nobody has waited for does not."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_two_processes_on_one_comparison(small: Any, comparison_text: Any) -> None:
    small.write("slow.py", "import time\n\n\ndef cost(a):\n    time.sleep(0.1 * len(a))\n    return a.width * 1.0\n")
    studies = {"slow": {"objectives": ["loss", "slow:cost"]}}
    small.write("slow.yaml", comparison_text(algos=["sobol"], seeds=9, evaluations=90, studies=studies))
    process = small.start("compare", "--config", "slow.yaml", "--out", "shared", "--workers", 1, "--quiet")
    while not list((small.folder / "shared").rglob("evaluations.sqlite")) and process.poll() is None:
        time.sleep(0.01)
    second = small("compare", "--resume", "shared", "--quiet")
    assert second.returncode == 2
    assert "another process works on" in second.stderr
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_a_run_that_kills_its_worker_fails_alone(small: Any, comparison_text: Any) -> None:
    small.write(
        "deadly.py",
        "import os\n\n\ndef cost(a):\n    os._exit(3) if (a.depth == 12).any() else None\n    return a.width * 1.0\n",
    )
    studies = {"deadly": {"objectives": ["loss", "deadly:cost"]}, "tight": {"budgets": {"total_ms": 40}}}
    small.write(
        "deadly.yaml", comparison_text(algos=["sobol"], baselines=False, seeds=1, evaluations=20, studies=studies)
    )
    result = small("compare", "--config", "deadly.yaml", "--out", "deadly", "--workers", 2, "--quiet")
    assert result.returncode == 1, result.stderr
    assert "every run of sobol on deadly failed: the worker process died; the other results are kept" in result.stderr
    page = (small.folder / "deadly" / "report.md").read_text()
    assert "Failed: sobol s0 in deadly: the worker process died" in page
    with (small.folder / "deadly" / "tables" / "results.csv").open(newline="") as file:
        assert {row["failed"] for row in csv.DictReader(file) if row["study"] == "tight"} == {"0"}
