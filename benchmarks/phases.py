"""Where the processor time of the bare command goes, by phases: the stack is looked at once a millisecond of it.

python benchmarks/phases.py [OTHER_TREE …] [-n RUNS] [-- ARGUMENTS OF run]
"""

import argparse
import json
import os
import runpy
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parents[1]
EVERY_S = 0.001
REST = "the rest"
PHASES = {  # file and function, the innermost of a stack decides
    "imports": (("<frozen importlib._bootstrap>", "_find_and_load"),),
    "strategy": (
        ("nas/search/strategy.py", "asked"),
        ("nas/search/strategy.py", "told"),
        ("nas/search/loop.py", "_step"),
    ),
    "objectives": (("nas/search/loop.py", "_evaluate_block"),),
    "store": (("nas/record/store.py", "append"),),
    "exact frontier, picks": tuple(("nas/answer/outcome.py", name) for name in ("exact", "picks", "changes")),
    "tables": (("nas/answer/outcome_files.py", "write_files"),),
    "pictures": (("nas/answer/pictures.py", "draw_all"),),
    "PNG": (("backend_agg.py", "print_png"),),
    "SVG": (("backend_svg.py", "print_svg"),),
    "report.html": (("nas/commands/report.py", "write_report"),),
    "screen": (("nas/answer/screen.py", "show"), ("nas/answer/screen.py", "show_head")),
}


def main() -> None:
    """Print the phases of each tree, medians of several runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", type=Path, nargs="*", help="other trees")
    parser.add_argument("-n", type=int, default=5, help="runs of each tree")
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:cut])
    arguments = words[cut + 1 :] or ["--algo", "nsga2"]
    trees = [HERE, *(tree.resolve() for tree in given.trees)]
    found: dict[Path, list[dict[str, float]]] = {tree: [] for tree in trees}
    for _ in range(given.n):
        for tree in trees:
            found[tree].append(seconds(tree, arguments))
    print(f"| processor s, median of {given.n} | {' | '.join(map(str, trees))} |\n|---|{'---|' * len(trees)}")
    for phase in ("interpreter", *PHASES, REST, "all"):
        medians = (statistics.median(run.get(phase, 0.0) for run in found[tree]) for tree in trees)
        print(f"| {phase} | {' | '.join(f'{median:.2f}' for median in medians)} |")


def seconds(tree: Path, arguments: list[str]) -> dict[str, float]:
    """Processor seconds of each phase of one run of a tree's code."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder, "phases.json")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tree), str(HERE / "benchmarks")))}
        child = f"import phases; phases.sampled({arguments!r}, {str(said)!r})"
        command = [sys.executable, "-c", child]
        subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
        return dict(json.loads(said.read_text()))


def sampled(arguments: list[str], said: str) -> None:
    """Run the command in this process and write the seconds of its phases."""
    started, counted = time.process_time(), Counter[str]()
    sys.argv = ["run", *arguments, "--out", "run"]
    signal.signal(signal.SIGPROF, lambda _, frame: counted.update([phase_of(frame)]))
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    try:
        runpy.run_module("nas.run", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    signal.setitimer(signal.ITIMER_PROF, 0)
    spent = time.process_time()
    share = (spent - started) / counted.total()
    found = {"interpreter": started, "all": spent, **{phase: share * count for phase, count in counted.items()}}
    Path(said).write_text(json.dumps(found))


def phase_of(frame: FrameType | None) -> str:
    """The phase of the innermost function that is in one."""
    for name, function in outwards(frame):
        for phase, places in PHASES.items():
            if any(function == of and name.endswith(file) for file, of in places):
                return phase
    return REST


def outwards(frame: FrameType | None) -> Iterator[tuple[str, str]]:
    """File and function of a frame and of its callers."""
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_code.co_name
        frame = frame.f_back


if __name__ == "__main__":
    main()
