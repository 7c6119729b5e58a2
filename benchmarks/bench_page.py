"""Writes the tables of docs/bench.md: the problems from their definitions, and median gaps from the reference runs.

    python benchmarks/bench_page.py

What stands between `<!-- NAME -->` and `<!-- /NAME -->` is replaced.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from nas.bench.definition import definition, names
from nas.bench.instance import bench_problem
from nas.bench.reference import reference_runs
from nas.compare.tables import percent

PAGE = Path(__file__).parent.parent / "docs" / "bench.md"
DRAWS = 20_000


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
    """Median gap at the end of every strategy, a row per problem; the smallest in bold, those of fewer evaluations marked."""
    runs = {name: {each.algorithm: each for each in reference_runs(name)} for name in of(family)}
    columns = sorted({algorithm for found in runs.values() for algorithm in found})
    rows = []
    for name, found in runs.items():
        asked = min(definition(name).evaluations, definition(name).designs)
        medians = {algorithm: each.median(f"gap_{each.evaluations}") for algorithm, each in found.items()}
        best = min((gap for gap in medians.values() if not math.isnan(gap)), default=0.0)
        cells = [
            _cell(
                medians.get(a),
                best,
                "" if a not in found or found[a].evaluations >= asked else f" ({found[a].evaluations})",
            )
            for a in columns
        ]
        rows.append((f"`{name.removeprefix('plas1-')}`", *cells))
    return markdown(("problem", *(f"`{column}`" for column in columns)), rows)


def _cell(gap: float | None, best: float, fewer: str) -> str:
    """A gap; after how many evaluations where they are fewer than the problem's budget."""
    if gap is None or math.isnan(gap):
        return "-"
    text = percent(gap)
    return f"**{text}**{fewer}" if gap == best else f"{text}{fewer}"


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
