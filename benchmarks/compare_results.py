"""The comparison behind docs/compare-results.md: run it or what is missing of it (hours), then write the page's tables.

python benchmarks/compare_results.py [--folder runs/compare-compare_paper] [--workers 2]

Needs the extras stats, numba and gp; without one the page says which strategies were left out. The
page's reading, outside the marks, is written by hand.
"""

import argparse
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

DOCS = Path(__file__).parents[1] / "docs"
PAGE, BEGIN, END = DOCS / "compare-results.md", "<!-- tables -->", "<!-- end of tables -->"
COLUMNS = ["study", "strategy", "evaluations", "runs", "median", "q1", "q3"]
TARGET = 0.01


def main() -> None:
    """Run, then write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/compare-compare_paper"))
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--interim", action="store_true", help="write what is there, run nothing")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    what = ["--resume", str(folder)] if folder.exists() else ["--config", "compare_paper", "--out", str(folder)]
    what += ["--interim"] if arguments.interim else []
    workers = [] if arguments.workers is None else ["--workers", str(arguments.workers)]
    subprocess.run([sys.executable, "-m", "nas.compare", *what, *workers], check=True)
    write(folder)


def write(folder: Path) -> None:
    """The page's tables, its picture and its data, from a comparison's folder."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables(folder)}\n\n{END}{after}", encoding="utf-8")
    shutil.copyfile(folder / "plots" / "ranks.png", DOCS / "images" / "compare-ranks.png")
    anytime = pd.read_csv(folder / "tables" / "anytime.csv")
    kept = anytime[(anytime.measure == "gap") & anytime.evaluations.isin(seen(folder))]
    kept[COLUMNS].to_csv(DOCS / "compare-results.csv", index=False, float_format="%.4g", lineterminator="\n")


def seen(folder: Path) -> list[int]:
    """The checkpoints of the ranks."""
    return sorted(pd.read_csv(folder / "tables" / "ranks.csv").evaluations.unique().tolist())


def tables(folder: Path) -> str:
    """Ranks and medians over the studies of two objectives, then the other studies one by one."""
    ranks, anytime = section(folder / "tables" / "ranks.md")[0], section(folder / "tables" / "anytime.md")
    results = pd.read_csv(folder / "tables" / "results.csv")
    apart = results[results.group.notna()].study.unique()
    others = [table for table in anytime if table.removeprefix("### ").partition(":")[0] in apart]
    return "\n\n".join(
        [ranks, f"### Over the same studies\n\n{summary(folder, results[results.group.isna()])}", *others]
    )


def section(path: Path) -> list[str]:
    """The titled tables of a file."""
    return ["### " + part.strip() for part in path.read_text(encoding="utf-8").split("### ")[1:]]


def summary(folder: Path, results: pd.DataFrame) -> str:
    """Medians over the studies of what each strategy came to, and its own cost."""
    targets = pd.read_csv(folder / "tables" / "targets.csv")
    targets = targets[(targets.target == TARGET) & targets.study.isin(results.study)]
    overhead = pd.read_csv(folder / "timing" / "overhead.csv")
    overhead = overhead[(overhead.what == "strategy_ms") & overhead.study.isin(results.study)]
    gap, share = (results[results.measure == name].groupby("strategy")["median"] for name in ("gap", "share"))
    reached = targets.groupby("strategy")[["reached", "runs"]].sum()
    found = pd.DataFrame(
        {
            "gap": gap.median(),
            "worst": gap.max(),
            "share": share.median(),
            "expected": targets.groupby("strategy")["expected_evaluations"].median(),
            "reached": reached.reached / reached.runs,
            "ms": overhead.groupby("strategy")["median"].median(),
        }
    )
    header = "| strategy | median gap | in its worst study | share found | evaluations to a gap of 1 % | runs that reached it | ms of strategy per evaluation |"
    rows = [
        f"| {name} | {100 * r.gap:.2g} % | {100 * r.worst:.2g} % | {r.share:.0%} | {expected(r.expected)} | {r.reached:.0%} | {r.ms:.2g} |"
        for name, r in found.sort_values(["gap", "expected"]).iterrows()
    ]
    return "\n".join([header, "|---" * 7 + "|", *rows])


def expected(evaluations: float) -> str:
    """Evaluations as read; a strategy that never got there has infinitely many."""
    return f"{evaluations:,.0f}" if math.isfinite(evaluations) else "never in most"


if __name__ == "__main__":
    main()
