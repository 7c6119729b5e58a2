"""The comparisons behind docs/compare-results.md: run one or what is missing of it (hours), then write its tables, in studies/strategies/results.md and as CSV.

python benchmarks/compare_results.py [--config compare_paper|compare_hard] [--folder FOLDER] [--workers 2] [--algos a,b]

Needs the extras numba and gp (without one the page says which strategies were left out) and plugins/bench with its extra stats. The
page's reading, outside the marks, is written by hand.
"""

import argparse
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "studies" / "strategies"
SHOWN = (200, 501, 1000, 2000)  # checkpoints of the hard studies
GAPS = [f"gap_{count}_percent" for count in SHOWN]
COLUMNS = ["study", "strategy", "evaluations", "runs", "median", "q1", "q3"]
TARGET = 0.01


def main() -> None:
    """Run, then write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", choices=list(PAGES), default="compare_paper")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--algos", help="only these, random and lhs; more of them another time")
    parser.add_argument("--interim", action="store_true", help="write what is there, run nothing")
    arguments = parser.parse_args()
    folder: Path = arguments.folder or Path(f"runs/compare-{arguments.config}")
    what = ["--resume", str(folder)] if folder.exists() else ["--config", arguments.config, "--out", str(folder)]
    what += ["--interim"] if arguments.interim else []
    what += ["--algos", arguments.algos] if arguments.algos else []
    what += [] if arguments.workers is None else ["--workers", str(arguments.workers)]
    subprocess.run([sys.executable, "-m", "nas.compare", *what], check=True)
    PAGES[arguments.config](folder)


def written(name: str, text: str) -> None:
    """The page with new tables between the marks of that name."""
    page = RECORD / "results.md"
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def paper(folder: Path) -> None:
    """Which strategy when: tables, picture and data, from a comparison's folder."""
    written("tables", tables(folder))
    published = folder.with_name(f"{folder.name}-published")
    subprocess.run(
        [sys.executable, "-m", "plas_bench.publish", str(folder), "--out", str(published), "--quiet"], check=True
    )
    shutil.copyfile(published / "plots" / "ranks.png", ROOT / "docs" / "images" / "compare-ranks.png")
    anytime = pd.read_csv(folder / "tables" / "anytime.csv")
    kept = anytime[(anytime.measure == "gap") & anytime.evaluations.isin(seen(folder))]
    kept[COLUMNS].to_csv(RECORD / "compare-results.csv", index=False, float_format="%.4g", lineterminator="\n")


def seen(folder: Path) -> list[int]:
    """The checkpoints of the ranks."""
    return sorted(pd.read_csv(folder / "tables" / "ranks.csv").evaluations.unique().tolist())


def tables(folder: Path) -> str:
    """Ranks and medians over the studies of two objectives; the CSV has the others too."""
    results = pd.read_csv(folder / "tables" / "results.csv")
    over = f"### Over the same studies\n\n{summary(folder, results[results.group.isna()])}"
    return f"{section(folder / 'tables' / 'ranks.md')[0]}\n\n{over}"


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


def hard(folder: Path) -> None:
    """What happens on hard studies: median gaps on the way, and which strategies are shown to be better or worse than random search."""
    anytime = pd.read_csv(folder / "tables" / "anytime.csv")
    pairs = pd.read_csv(folder / "tables" / "pairs.csv")
    results = pd.read_csv(folder / "tables" / "results.csv")
    gaps = anytime[(anytime.measure == "gap") & anytime.evaluations.isin(SHOWN)]
    shown = pairs[(pairs.measure == "gap") & (pairs.family == "against random")]
    rows = []
    for study, group in results.drop_duplicates("study").set_index("study").group.items():
        medians = gaps[gaps.study == study].pivot_table(index="strategy", columns="evaluations", values="median")
        verdicts = {row["first"]: row.better for _, row in shown[shown.study == study].iterrows()}
        for strategy, row in medians.sort_values([SHOWN[-1], SHOWN[1]]).iterrows():
            cells = [f"{100 * value:.2g}" for value in row]
            rows.append([study, group, strategy, *cells, verdict(str(strategy), verdicts)])
    table = pd.DataFrame(rows, columns=["study", "group", "strategy", *GAPS, "against_random"])
    table.to_csv(RECORD / "hard-studies.csv", index=False, lineterminator="\n")
    written("hard", least(table))


def least(table: pd.DataFrame) -> str:
    """By study the least median gap at each checkpoint, whose it is, and random search's at the last."""
    counts = [f"{count:,}" for count in SHOWN]
    lines = [
        f"| study | {' | '.join(f'least after {count}' for count in counts)} | random after {counts[-1]} |",
        "|---" * (len(counts) + 2) + "|",
    ]
    for study, group in table.groupby("study", sort=False):
        found = group.set_index("strategy")[GAPS].astype(float)
        best = [first(found[gap]) for gap in GAPS]
        lines.append(f"| `{study}` | {' | '.join(best)} | {found.at['random', GAPS[-1]]:g} % |")
    return "\n".join(lines)


def first(gaps: pd.Series) -> str:
    """The least gap and whose it is; of more than two strategies the first two."""
    names = list(gaps.index[gaps == gaps.min()])
    return f"{gaps.min():g} % {', '.join(names[:2])}" + (", …" if len(names) > 2 else "")


def verdict(strategy: str, better: dict[str, str]) -> str:
    """Better or worse than random search, or neither shown (Holm, 5 %)."""
    found = better.get(strategy)
    return "-" if found is None else {strategy: "better", "random": "worse"}.get(found, "no difference shown")


def expected(evaluations: float) -> str:
    """Evaluations as read; a strategy that never got there has infinitely many."""
    return f"{evaluations:,.0f}" if math.isfinite(evaluations) else "never in most"


PAGES = {"compare_paper": paper, "compare_hard": hard}

if __name__ == "__main__":
    main()
