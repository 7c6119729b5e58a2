"""User CPU of the bare command as a whole process, in turn with another tree's, and whether both write the same bytes.

python benchmarks/whole_run.py [-n PAIRS] OTHER_TREE [-- ARGUMENTS OF run]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
SAME = ("evaluations.csv", "frontier.csv")


def main() -> None:
    """Print the user seconds of each pair, their ratio, and medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="another tree, for example 'git worktree add OTHER_TREE COMMIT'")
    parser.add_argument("-n", type=int, default=5, help="pairs")
    parser.add_argument("arguments", nargs="*", default=["--algo", "nsga2"], help="arguments of run")
    given = parser.parse_args()
    trees = (HERE, given.other.resolve())
    for tree in trees:
        seconds(tree, given.arguments)  # compiled code and the disk's cache
    pairs = [tuple(seconds(tree, given.arguments) for tree in trees) for _ in range(given.n)]
    for here, there in pairs:
        print(f"{here[0]:6.2f} s  {there[0]:6.2f} s  ratio {here[0] / there[0]:.3f}  same bytes: {here[1] == there[1]}")
    ours, theirs = ([pair[i][0] for pair in pairs] for i in (0, 1))
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"medians {statistics.median(ours):.2f} s and {statistics.median(theirs):.2f} s, ratio {ratio:.3f}")


def seconds(tree: Path, arguments: list[str]) -> tuple[float, list[bytes]]:
    """User seconds of one run of a tree's code, and the files that must not differ."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.times().children_user
        subprocess.run(
            [sys.executable, "-m", "nas.run", *arguments, "--out", "run"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return os.times().children_user - before, [Path(folder, "run", name).read_bytes() for name in SAME]


if __name__ == "__main__":
    main()
