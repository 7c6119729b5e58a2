"""Writes the tables of docs/bench.md: the problems from their definitions, and median gaps from the reference runs.

    python benchmarks/bench_page.py

What stands between `<!-- NAME -->` and `<!-- /NAME -->` is replaced.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from plas_bench.definition import definition, names
from plas_bench.instance import bench_problem
from plas_bench.reference import reference_runs

from nas.compare.tables import percent

PAGE = Path(__file__).parent.parent / "docs" / "bench.md"
DRAWS = 20_000
SHOWN = (
    "local_search",
    "nsga2",
    "raw_pymoo_integers",
    "random",
)  # of every strategy: `plas bench score … --reference` and plas_bench/reference.csv


def of(family: str) -> list[str]:
    """Problems of a family."""
    return [name for name in names() if definition(name).family == family]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])


def problems() -> str:
    """Formulas: designs, objectives, limits, share that is feasible, members of the front."""
    rows = []
    for name in of("analytic"):
        bench = bench_problem(name)
        share = float(bench.evaluated(bench.sample(DRAWS, seed=0)).feasible.mean())
        limits = ", ".join(f"`{limit}`" for limit in bench.constraints) or "none"
        members = f"{bench.definition.front.members:,}"
        rows.append(
            (
                f"`{name}`",
                f"{bench.size:,}",
                ", ".join(bench.objectives),
                limits,
                percent(share) if share else f"< {percent(1 / DRAWS)}",
                members,
                bench.definition.title,
            )
        )
    return markdown(("problem", "designs", "minimise", "limits", "feasible", "members", "what"), rows)


def kinds() -> str:
    """Kinds: what is wrong in each, members of the two fronts."""
    rows = {}
    for name in of("kind"):
        stem, title = name.rpartition("-")[0], definition(name).title.partition(": ")[2]
        objectives = ", ".join(definition(name).study["objectives"])
        rows.setdefault(stem, [f"`{stem}-1`, `-2`", objectives, title, ""])[3] += (
            f", {definition(name).front.members:,}"
        )
    found = [(*row[:3], row[3].removeprefix(", ")) for row in rows.values()]
    return markdown(("problems", "minimise", "what is wrong, or jumps", "members"), found)


def tables() -> str:
    """Tables: rows, what was measured, where from."""
    rows = []
    for name in of("table"):
        known = definition(name)
        assert known.table is not None
        where = "packaged" if not known.table.external else f"`{known.table.file}`"
        rows.append(
            (
                f"`{name}`",
                f"{known.designs}",
                known.title,
                ", ".join(known.study["objectives"]),
                known.table.source,
                where,
            )
        )
    return markdown(("problem", "designs", "what", "minimise", "source", "file"), rows)


def reference(family: str) -> str:
    """Median gap at the end, a row per problem: the least two of all strategies and whose they are, and of some strategies each."""
    rows = []
    for name in of(family):
        medians = {each.algorithm: each.median(f"gap_{each.evaluations}") for each in reference_runs(name)}
        ranked = sorted((gap, algorithm) for algorithm, gap in medians.items() if not math.isnan(gap))
        least = [f"{percent(gap)} `{algorithm}`" for gap, algorithm in ranked[:2]]
        rows.append((f"`{name.removeprefix('plas1-')}`", *least, *(_cell(medians[each]) for each in SHOWN)))
    return markdown(("problem", "least", "second", *(f"`{each}`" for each in SHOWN)), rows)


def _cell(gap: float) -> str:
    """A gap, where it is known."""
    return "-" if math.isnan(gap) else percent(gap)


def seeds() -> str:
    """How many seeds each strategy was run with."""
    counts: dict[str, set[int]] = {}
    for name in names():
        for each in reference_runs(name):
            counts.setdefault(each.algorithm, set()).add(each.runs)
    return ", ".join(f"`{name}` {min(found)}" for name, found in sorted(counts.items()))


def main() -> None:
    """Write every table."""
    text = PAGE.read_text(encoding="utf-8")
    found = {
        "problems": problems(),
        "kinds": kinds(),
        "tables": tables(),
        "formulas": reference("analytic"),
        "measured": "\n\n".join([reference("kind"), reference("table")]),
        "seeds": f"Seeds: {seeds()}.",
    }
    for name, content in found.items():
        pattern = re.compile(f"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        text, count = pattern.subn(lambda match, content=content: match[1] + content + match[2], text)
        assert count == 1, name
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
