"""Every public row beside what is predicted of it: a table of all rows, and a page of groups, worst rows and rows left out.

    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.accuracy --out OUT

FOLDER holds the tables and logs of latency/, which are not part of the project.
OUT gets accuracy.csv, with the measured times of others, accuracy-rows.csv, of those that ship, and what has errors alone, accuracy-groups.csv, accuracy-classes.csv,
best.csv and accuracy.md: studies/accuracy has the latter five, accuracy.md as a section of results.md; best.csv has the least errors that any release had, which tests hold. Of classes every device is left out whole.
A row is predicted from other models of its group, else from other lengths of its only model, else it was fitted to.
"""

import argparse
import csv
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.calibration import calibrations, device, measurements, public_rows, unread
from benchmarks.held_out import CPU, SHORT, cpu_rows
from benchmarks.typical import OLD, Judged, coverage, left_out, public_groups
from nas.files.tables import csv_text
from nas.study.catalogue import load_law
from objectives.device import Device
from plas_board.calibrate.command import LAW
from plas_board.calibrating.group import PHASES, Calibrated, calibrate
from plas_board.calibrating.held_out import Group, leave_one_out
from plas_board.calibrating.measurements import Measurement
from search_spaces.arrays import FloatArray

BY_MODEL, BY_LENGTH, FITTED = "other models", "other lengths", "fitted to"
WORST = 0.25  # error from which a row is named
Cells = Sequence[str]


@dataclass(frozen=True)
class Row:
    """A measured phase with its time predicted, and by the datasheet alone, ms; `seen`: what the prediction was made from."""

    m: Measurement
    predicted: float
    datasheet: float
    seen: str

    @property
    def error(self) -> float:
        """predicted / measured − 1."""
        return self.predicted / self.m.ms - 1.0


def judged(group: Calibrated, board: Device) -> list[Row]:
    """Every row of a group, held out where it can be."""
    by_length = np.full(len(group.rows), np.nan)
    if group.models == 1:
        by_length = _by_length(group, board)
    found = []
    for i, m in enumerate(group.rows):
        choices = ((group.held_out[i], BY_MODEL), (by_length[i], BY_LENGTH), (group.in_sample[i], FITTED))
        predicted, seen = next((float(ms), seen) for ms, seen in choices if np.isfinite(ms))
        found.append(Row(m, predicted, float(group.datasheet[i]), seen))
    return found


def _by_length(group: Calibrated, board: Device) -> FloatArray:
    """Each length over `SHORT` of a single model predicted from its others, ms, (n,); NaN elsewhere."""
    table = Group(group.terms, np.array([m.model for m in group.rows]), board)
    lengths = np.array([max(m.prompt, m.generated) for m in group.rows])
    several = len(np.unique(lengths)) > 2
    return leave_one_out(table, by=lengths, which=np.unique(lengths[lengths > SHORT]) if several else np.zeros(0))


def every_row(folder: Path) -> Iterator[list[Row]]:
    """Rows of every device in the catalogue and of two CPU cores, a list per device, mode, engine, format and batch."""
    rows = public_rows(folder)
    for group in calibrations(rows, lambda m, r: True):
        board = device(group.rows[0].device)
        assert board is not None
        yield judged(group, board)
    yield judged(calibrate(cpu_rows(folder), CPU, load_law(LAW), "llama.cpp"), CPU)


def unused(folder: Path) -> list[str]:
    """Which rows were not used, and why."""
    rows = public_rows(folder)
    unknown = Counter(
        name for name, found in measurements(rows, lambda m, r: True).items() if not device(name) for _ in found
    )
    why = Counter(row.reason for row in unread(rows))
    why |= Counter({f"device {name} is not in the catalogue": n for name, n in unknown.items()})
    return [f"{n} row{'s' * (n > 1)}: {reason}" for reason, n in why.most_common()]


def cells(row: Row) -> dict[str, object]:
    """A row of the table."""
    m = row.m
    return {
        "device": m.device,
        "engine": m.engine,
        "format": m.format.family,
        "batch": m.batch,
        "model": m.model,
        "phase": m.phase,
        "prompt_len": m.prompt,
        "gen_len": m.generated,
        "measured_ms": f"{m.ms:.6g}",
        "predicted_ms": f"{row.predicted:.6g}",
        "error": f"{row.error:+.4f}",
        "predicted_from": row.seen,
        "datasheet_ms": f"{row.datasheet:.6g}",
    }


def _off(rows: Sequence[Row], phase: str) -> tuple[str, str, int]:
    """Of the rows of a phase that were held out: median and 90th percentile of the error, %, and how many they are."""
    off = 100 * np.abs([row.error for row in rows if row.m.phase == phase and row.seen != FITTED])
    return (f"{np.median(off):.1f}", f"{np.quantile(off, 0.9):.1f}", len(off)) if len(off) else ("", "", 0)


def _median(rows: Sequence[Row], phase: str) -> str:
    median, most, number = _off(rows, phase)
    return f"{median} % ({most} %), n {number}" if number else "-"


def _datasheet(rows: Sequence[Row]) -> str:
    off = [abs(row.datasheet / row.m.ms - 1.0) for row in rows]
    return f"{100 * np.median(off):.0f}"


def groups_csv(groups: Sequence[Sequence[Row]]) -> str:
    """A row per device, power mode, engine, format and batch: errors of what was held out, and of the datasheet on all rows of both phases, %."""
    names = ["device", "engine", "format", "batch", "models", "predicted_from"]
    names += [f"{phase}_{what}" for phase in PHASES for what in ("median_percent", "p90_percent", "rows")]
    lines = [_group(group) for group in _ordered(groups)]
    return "\n".join(",".join(line) for line in ([*names, "datasheet_percent"], *lines)) + "\n"


def _ordered(groups: Sequence[Sequence[Row]]) -> list[Sequence[Row]]:
    return sorted(groups, key=lambda group: (group[0].m.device, group[0].m.engine, group[0].m.batch))


def _group(rows: Sequence[Row]) -> Cells:
    first, seen = rows[0].m, {row.seen for row in rows}
    how = next((way for way in (BY_MODEL, BY_LENGTH) if way in seen), FITTED)
    names = (first.device, first.engine, first.format.family, str(first.batch), str(len({row.m.model for row in rows})))
    return (*names, how, *(str(each) for phase in PHASES for each in _off(rows, phase)), _datasheet(rows))


def _engines(groups: Sequence[Sequence[Row]]) -> list[Cells]:
    """A line per engine, whatever its version, of the page's first table."""
    by: dict[str, list[Row]] = {}
    for group in _ordered(groups):
        by.setdefault(group[0].m.engine.split()[0], []).extend(group)
    return [
        (
            name,
            str(len({row.m.device for row in rows})),
            *(_median(rows, phase) for phase in PHASES),
            f"{_datasheet(rows)} %",
        )
        for name, rows in sorted(by.items())
    ]


def _named(row: Row) -> Cells:
    m = row.m
    length = f"{m.prompt:,}" if m.phase == "prefill" else f"{m.prompt + m.generated:,}"
    where = (m.device, m.engine, m.format.family, str(m.batch))
    slow = "slow" if row.error > 0 else "fast"
    return (*where, m.model, m.phase, length, f"{100 * abs(row.error):.0f} % too {slow}", row.seen)


BEST = ("class", "phase", "engine", "median", "in range")
RECORD = Path(__file__).parents[1] / "studies" / "accuracy" / "best.csv"
CLASSES = ("class", "device", "phase", "devices", "rows", "median", "p90", "in range", "datasheet", "llmfit")


def of_classes(judged: Sequence[Judged]) -> list[dict[str, str]]:
    """Of each phase a line for all devices, for each kind and for each device of it, %: errors, how many are in the range of 80 %, errors by the datasheet and by llmfit's rule."""
    lines = []
    for phase in (p for p in PHASES if any(row.phase == p for row in judged)):
        held = coverage(judged, phase)
        rows = [row for row in judged if row.phase == phase]
        places = [("all", ""), *sorted({(row.label, name) for row in rows for name in ("", row.device)})]
        for kind, name in places:
            own = [row for row in rows if kind in (row.label, "" if row.served else "all") and name in ("", row.device)]
            inside = "" if name else f"{100 * held[kind][1]:.0f}"
            counts = (str(len({row.device for row in own})), str(len(own)))
            errors = [[getattr(row, what) for row in own] for what in ("off", "at_peaks", "by_rule")]
            ours, peaks, rule = (100 * np.abs(np.exp(-np.array(off)) - 1.0) for off in errors)
            by_rule = f"{np.median(rule):.1f}" if phase == "decode" else ""
            figures = (
                f"{np.median(ours):.1f}",
                f"{np.quantile(ours, 0.9):.1f}",
                inside,
                f"{np.median(peaks):.1f}",
                by_rule,
            )
            lines.append(dict(zip(CLASSES, (kind, name, phase, *counts, *figures), strict=True)))
    return lines


SHIPPED = ("device", "engine", "model", "format", "phase", "tokens", "measured_ms", "predicted_ms", "llmfit_ms")


def shipped_rows(judged: Sequence[Judged]) -> Iterator[dict[str, object]]:
    """Every row that ships, of the scoreboard's build, beside what is predicted of it with its chip left out whole, and by llmfit's rule."""
    for each in judged:
        if (m := each.row) is None or m.engine != OLD[1]:
            continue
        times = (each.ms, each.ms / math.exp(each.off), each.ms / math.exp(each.by_rule))
        names = (
            m.device,
            m.engine,
            m.model,
            m.format.family,
            each.phase,
            m.prompt if each.phase == "prefill" else m.generated,
        )
        figures = ("" if math.isnan(ms) else f"{ms:.5g}" for ms in times)
        yield dict(zip(SHIPPED, (*names, *figures), strict=True))


def classes_csv(classes: Sequence[dict[str, str]]) -> str:
    """The lines as a table."""
    return csv_text({name: [line[name] for line in classes] for name in CLASSES})


def best_ever(
    before: Sequence[Mapping[str, str]], now: Mapping[bool, Sequence[Mapping[str, str]]]
) -> list[dict[str, str]]:
    """Of each kind and phase, engine stated or not, the least median that any release had, %, and the most that was in range then."""
    found = {(row["class"], row["phase"], row["engine"]): dict(row) for row in before}
    for stated, lines in now.items():
        for line in (line for line in lines if not line["device"]):
            key = (line["class"], line["phase"], "stated" if stated else "any")
            best = found.setdefault(key, dict(zip(BEST, (*key, line["median"], line["in range"]), strict=True)))
            best["median"] = min(best["median"], line["median"], key=float)
    return [found[key] for key in sorted(found)]


def class_table(classes: Sequence[dict[str, str]]) -> str:
    """A line for each kind, in Markdown."""
    shown = [name for name in CLASSES if name != "device"]
    return table(shown, [[line[name] for name in shown] for line in classes if not line["device"]])


def table(header: Cells, body: Sequence[Cells]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(groups: Sequence[Sequence[Row]], unused: Sequence[str], classes: Sequence[dict[str, str]]) -> str:
    """A section of the page: how many rows, errors by engine, the worst rows by name, and what was left out."""
    rows = [row for group in groups for row in group]
    counts = Counter(row.seen for row in rows)
    worst = sorted((row for row in rows if abs(row.error) > WORST), key=lambda row: -abs(np.log1p(row.error)))
    of_engines = ("engine", "devices and modes", *PHASES, "datasheet")
    of_rows = ("device", "engine", "format", "batch", "model", "phase", "tokens", "predicted", "from")
    return f"""## Predicted and measured, row by row

Every row of the public measurements beside what is predicted of it: {len(rows)} rows in {len(groups)} groups of one device, power mode, engine, weight
format and batch. {counts[BY_MODEL]} are predicted from other models of their group, {counts[BY_LENGTH]}, of more than {SHORT:,} tokens, from other lengths of its only model; {counts[FITTED]} were fitted
to and are in no median. The measured times belong to those who published them; with their table in a folder of yours,

<!-- not run: the public measurements are no part of the project -->
```bash
PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.accuracy --out accuracy
```

writes this section, [accuracy-groups.csv](accuracy-groups.csv), a line for every group, and `accuracy.csv` with every row: measured, predicted, from what, and by the datasheet.

By engine, medians of the rows that were held out, with 90th percentiles in brackets; *datasheet*: the median of all rows of both phases without calibration.

{table(of_engines, _engines(groups))}

By kind of chip, every device [left out whole](#without-a-profile), %; llmfit: active weights at 55 % of the bandwidth; each device in [accuracy-classes.csv](accuracy-classes.csv):

{class_table(classes)}

### The worst rows

Off by more than {100 * WORST:.0f} %, the worst first: {len(worst)} of {len(rows)}.

{table(of_rows, [_named(row) for row in worst])}

### Rows left out

{chr(10).join(f"- {said}" for said in unused)}
"""


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of accuracy.md and of three tables")
    out, folder = parser.parse_args().out, Path(os.environ["PLAS_EXTERNAL_DATA"])
    groups = list(every_row(folder))
    judged = {stated: left_out(public_groups(folder), engines=stated) for stated in (False, True)}
    now = {stated: of_classes(rows) for stated, rows in judged.items()}
    classes, before = now[False], csv.DictReader(RECORD.read_text(encoding="utf-8").splitlines())
    record = best_ever(list(before), now)
    told = [cells(row) for group in groups for row in group]
    out.mkdir(parents=True, exist_ok=True)
    (out / "accuracy.csv").write_text(
        csv_text({name: [row[name] for row in told] for name in told[0]}), encoding="utf-8"
    )
    (out / "best.csv").write_text(csv_text({name: [row[name] for row in record] for name in BEST}), encoding="utf-8")
    (out / "accuracy-classes.csv").write_text(classes_csv(classes), encoding="utf-8")
    shipped = list(shipped_rows(judged[False]))
    (out / "accuracy-rows.csv").write_text(
        csv_text({name: [row[name] for row in shipped] for name in SHIPPED}), encoding="utf-8"
    )
    (out / "accuracy-groups.csv").write_text(groups_csv(groups), encoding="utf-8")
    (out / "accuracy.md").write_text(page(groups, unused(folder), classes), encoding="utf-8")
    print(f"{len(told)} rows: {out / 'accuracy.md'}, {out / 'accuracy.csv'}")


if __name__ == "__main__":
    main()
