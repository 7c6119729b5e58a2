"""Stages `page` and `figures` of the llama.cpp measurement: the table of all rows, and what stands between the marks of results.md."""

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nas.files.tables import write
from nas.study.catalogue import load_device
from studies.llama_cpp.judging import ALONE, HEAD, LINES, PHASES, Line, batch_errors, by_length, judged, rows_of, worst
from studies.llama_cpp.measuring import BATCH, FORMATS, Plan

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def write_page(plan: Plan) -> None:
    """Table, device file and page; those of a rehearsal stay in its own folder."""
    folder = plan.root / "page" if plan.rehearsed else HERE
    folder.mkdir(exist_ok=True)
    shutil.copyfile(plan.root / "rows.csv", folder / "llama-cpp.csv")
    shutil.copyfile(plan.board, folder / "llama-cpp-board.yaml")
    parts = [of_record(plan), *figures(folder / "llama-cpp.csv", folder / "llama-cpp-board.yaml")]
    write(folder / "results.md", filled((HERE / "results.md").read_text(encoding="utf-8"), parts))


def refresh_page() -> None:
    """The figures of the page again from the table that ships, after a change of the model or of its fit."""
    page = HERE / "results.md"
    text = page.read_text(encoding="utf-8")
    record = text.partition(f"{BEGIN}\n\n")[2].partition("\n\n")[0]
    write(page, filled(text, [record, *figures(HERE / "llama-cpp.csv", HERE / "llama-cpp-board.yaml")]))


def filled(page: str, parts: Sequence[str]) -> str:
    """A page with these parts between its marks; what stands around them stays."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{rest.partition(END)[2]}"


def of_record(plan: Plan) -> str:
    """When and on what it was measured, how many rows failed or were contended."""
    rows = rows_of(plan.root / "rows.csv")
    log = sorted(plan.root.glob("measured/*/samples.jsonl"))
    lines = [json.loads(line) for path in log for line in path.read_text(encoding="utf-8").splitlines()]
    known = lines[0]["machine"]
    states = Counter(row["state"] for row in rows)
    contended = sum(row["contended"] == "yes" for row in rows)
    return (
        f"Measured from {lines[0]['machine']['time'][:10]} to {max(line['machine']['time'] for line in lines)[:10]} on {known['processor']}, "
        f"{known['cores']} cores; {rows[0]['engine']}. {len(rows)} rows of {len({row['model'] for row in rows})} models, "
        f"{len(rows) - states['ok']} failed, {contended} contended."
    )


def figures(table: Path, board: Path) -> list[str]:
    """Every table and verdict, from the rows and the device file that ship."""
    device = load_device(str(board))
    parts = [
        f"The machine's own rates: {device.fp16 / 1e9:.0f} GFLOP/s in half precision, {device.bandwidth / 1e9:.1f} GB/s"
        + ("." if device.cache is None else f", a last-level cache of {device.cache / 1e6:.0f} MB.")
    ]
    for kind in FORMATS:
        lines = [line for name in LINES for line in judged(table, str(board), kind, name)]
        parts += [f"### {kind}", verdicts(lines), markdown(HEAD, [line.cells() for line in lines])]
        parts += [f"Worst rows, held out by model: {'; '.join(worst(table, str(board), kind))}."]
        found = by_length(table, str(board), kind)
        lengths = list(dict.fromkeys(length for _, length in found))
        head = ("held out by length", *(f"{n:,} tokens" for n in lengths))
        parts += [markdown(head, [(phase, *(found[phase, n] for n in lengths)) for phase in PHASES])]
    body = [(kind, *batch_errors(table, str(board), kind)) for kind in FORMATS]
    parts += [
        f"### {BATCH} sequences at once",
        markdown(("format", *(f"{phase}, {how}" for phase in PHASES for how in ALONE)), body),
    ]
    return parts


def verdicts(lines: Sequence[Line]) -> str:
    """Which lines hold, and what fails of the others."""
    said = []
    for name in LINES:
        faults = [fault for line in lines if line.name == name for fault in line.faults()]
        said.append(f"**{name}: {'fails' if faults else 'holds'}**" + (f" ({'; '.join(faults)})" if faults else ""))
    return ". ".join(said) + "."


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])
