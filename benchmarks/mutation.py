"""Mutation run: how many small faults, planted one by one in a copy of the code, the fast tests find.

python benchmarks/mutation.py [--sample 330] [--seed 0] [--budget 25] [--out runs/mutation.csv]
python benchmarks/mutation.py --again [--also tests/nas/record/test_store.py] [--budget 100] [--out runs/mutation.csv]

The tests of a fault are those of the fast tier that run its line (coverage tells), quickest first, up to --budget seconds.
A run that is stopped goes on where it was; --again tries what survived once more, --also with test files written since.
"""

import argparse
import csv
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from coverage import CoverageData
from mutants import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[1]
GROUPS = {
    "objectives": ["objectives/**/*.py"],
    "search_spaces": ["search_spaces/**/*.py"],
    "nas core": [
        *(f"nas/problem/{name}.py" for name in ("dominance", "indicators", "picks", "preferences")),
        *(f"nas/problem/{name}.py" for name in ("problem", "evaluations", "objective")),
        *(f"nas/record/{name}.py" for name in ("store", "database", "log")),
        *(f"nas/search/{name}.py" for name in ("loop", "archive", "constraints", "key_index")),
        "nas/compare/statistics.py",
        "nas/exact/decomposition/*.py",
    ],
}
COLUMNS = ["group", "path", "line", "operator", "before", "after", "result", "seconds", "tests", "said"]
FAST = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
LEFT_OUT = (".*", "__pycache__", "*.egg-info", "runs")
WARM = ["numpy", "scipy.stats", "scipy.optimize", "scipy.stats.qmc", "pandas", "pydantic", "yaml", "typer", "moocore"]
WARM += ["hypothesis", "hypothesis.extra.numpy", "matplotlib.pyplot", "optuna", "pymoo.algorithms.moo.nsga2"]


class Durations:
    """Seconds of every test, setup and teardown included."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called by pytest after each phase of a test."""
        self.seconds[report.nodeid] += report.duration


def every() -> dict[str, list[Mutant]]:
    """All faults that can be planted, by group."""
    found = {}
    for group, patterns in GROUPS.items():
        if missing := [pattern for pattern in patterns if not any(ROOT.glob(pattern))]:
            raise SystemExit(f"{group}: expected files, got none for {', '.join(missing)}; correct GROUPS")
        paths = sorted({path for pattern in patterns for path in ROOT.glob(pattern)})
        found[group] = [mutant for path in paths for mutant in mutants_of(ROOT, str(path.relative_to(ROOT)))]
        print(f"{group}: {len(found[group]):,} faults in {len(paths)} files", flush=True)
    return found


def sampled(count: int, seed: int) -> list[tuple[str, Mutant]]:
    """Faults drawn without replacement, as many from each group, in an order of their own."""
    generator, drawn = random.Random(seed), []
    for group, mutants in every().items():
        drawn += [(group, mutant) for mutant in generator.sample(mutants, min(-(-count // len(GROUPS)), len(mutants)))]
    generator.shuffle(drawn)
    return drawn


def left(rows: dict[tuple[str, ...], dict[str, str]]) -> list[tuple[str, Mutant]]:
    """Faults that survived, as far as the code still holds them."""
    faults = [(group, mutant) for group, mutants in every().items() for mutant in mutants]
    return [each for each in faults if rows.get(_key(_row(*each)), {}).get("result") == "survived"]


def _row(group: str, mutant: Mutant) -> dict[str, str]:
    return {"group": group, **{name: str(getattr(mutant, name)) for name in COLUMNS[1:6]}}


def copied(folder: Path) -> Path:
    """A copy of the checkout whose compiled files are checked by content, so that no fault is overlooked."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
    (folder / "runs").mkdir(exist_ok=True)
    compiled = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
    subprocess.run([*compiled, "nas", "objectives", "search_spaces"], cwd=folder, check=True)
    return folder


def covered(tree: Path, known: Path) -> dict[str, dict[str, Any]]:
    """Per test of the fast tier its seconds and, per file, the lines that it runs; read from `known` if it is there."""
    if not known.exists():
        here = os.path.abspath(__file__)
        subprocess.run([sys.executable, here, "--trace", str(known)], cwd=tree, check=True)
    found: dict[str, dict[str, Any]] = json.loads(known.read_text())
    return found


def trace(known: Path) -> None:
    """Run the fast tier of the current folder under coverage and write what each test takes and runs."""
    durations = Durations()
    packages = [f"--cov={name}" for name in ("nas", "objectives", "search_spaces")]
    code = pytest.main([*FAST, *packages, "--cov-context=test", "--cov-report="], plugins=[durations])
    if code not in (0, 1):
        raise SystemExit(f"pytest ended with {code}")
    data = CoverageData()
    data.read()
    lines: dict[str, dict[int, list[str]]] = {}
    for path in data.measured_files():
        contexts = data.contexts_by_lineno(path)
        name = str(Path(path).relative_to(Path.cwd()))
        lines[name] = {line: sorted({each.partition("|")[0] for each in c if each}) for line, c in contexts.items()}
    known.write_text(json.dumps({"seconds": durations.seconds, "lines": lines}))


def tests_of(mutant: Mutant, known: dict[str, dict[str, Any]], budget: float) -> list[str]:
    """Tests that run the fault's line (what is run at import: any line of its file), quickest first, within the budget."""
    seconds, lines = known["seconds"], known["lines"].get(mutant.path, {})
    span = range(mutant.line, mutant.line + mutant.before.count("\n") + 1)
    names = {name for line in span for name in lines.get(str(line), ())}
    names = names or {name for each in lines.values() for name in each}
    chosen, spent = [], 0.0
    for name in sorted(names, key=lambda each: (seconds.get(each, 0.0), each)):
        spent += seconds.get(name, 0.0) + 0.003
        if spent > budget and chosen:
            break
        chosen.append(name)
    return chosen


@contextmanager
def planted(tree: Path, mutant: Mutant) -> Iterator[None]:
    """The copy with a fault in it."""
    path = tree / mutant.path
    original = path.read_bytes()
    path.write_bytes(mutant.source(original))
    try:
        yield
    finally:
        path.write_bytes(original)


def judged(tree: Path, tests: list[str], limit: float) -> tuple[str, str]:
    """What the tests say in a process of their own: killed, timeout or survived, and pytest's last lines."""
    if not tests:
        return "survived", "no test runs this line"
    output = tree / ".said"
    process = os.fork()
    if process == 0:
        _child(tree, tests, output)
    deadline = time.monotonic() + limit
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return "timeout", ""
        time.sleep(0.05)
    said = [line for line in output.read_text(errors="replace").splitlines() if line.startswith(("FAILED", "ERROR"))]
    return ("survived" if status == 0 else "killed"), " | ".join(said)[:200]


def _child(tree: Path, tests: list[str], output: Path) -> None:
    """Run tests and leave; third-party packages are loaded already, ours are not."""
    os.setsid()
    os.chdir(tree)
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    code = 1
    try:
        code = int(pytest.main([*FAST, "-x", "--tb=no", "--rootdir", str(tree), *tests]))
    finally:
        os._exit(code)


def recorded(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """What a file of results holds, by fault."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {_key(row): row for row in csv.DictReader(file)}


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("path", "line", "before", "after"))


def written(path: Path, rows: dict[tuple[str, ...], dict[str, str]]) -> None:
    """The results, whole or not at all."""
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows.values())
    part.replace(path)


def run(given: argparse.Namespace) -> None:
    """Judge every fault of the sample that has no result yet."""
    rows = recorded(given.out)
    drawn = left(rows) if given.again else sampled(given.sample, given.seed)
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder).resolve())
        known = covered(tree, given.out.with_suffix(".lines.json"))
        for name in WARM:
            importlib.import_module(name)
        for number, (group, mutant) in enumerate(drawn, 1):
            row = _row(group, mutant)
            if _key(row) in rows and not given.again:
                continue
            tests, start = [*given.also, *tests_of(mutant, known, given.budget)], time.monotonic()
            with planted(tree, mutant):
                result, said = judged(tree, tests, given.timeout)
            seconds = f"{time.monotonic() - start:.1f}"
            rows[_key(row)] = row | {"result": result, "seconds": seconds, "tests": str(len(tests)), "said": said}
            written(given.out, rows)
            print(f"{number} {result} {seconds} s {mutant.path}:{mutant.line} {mutant.operator}", flush=True)
    summary = Counter((row["group"], row["result"]) for row in rows.values())
    for (group, result), count in sorted(summary.items()):
        print(f"{group}: {count} {result}")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=330)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=25.0, help="seconds of tests per fault")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds after which a fault counts as found")
    parser.add_argument("--out", type=Path, default=Path("runs/mutation.csv"))
    parser.add_argument("--again", action="store_true", help="try what survived once more")
    parser.add_argument("--also", action="append", default=[], help="a test file to run with --again; repeats")
    parser.add_argument("--trace", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.trace:
        trace(given.trace)
    else:
        run(given)


if __name__ == "__main__":
    main()
