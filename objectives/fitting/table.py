"""A table of trained models: a CSV with a loss per row, read without dropping or repairing anything silently."""

import csv
import hashlib
import io
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from objectives.features import COUNTS, OWNERS, feature
from objectives.written_text import csv_fault
from search_spaces.architectures import ALIASES, SHAPE, Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

MOST_ROWS = 10_000
HUGGING_FACE = {
    "num_hidden_layers": "depth",
    "hidden_size": "width",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "moe_intermediate_size": "expert_size",
    "intermediate_size": "expert_size",
    "num_local_experts": "n_experts",
    "num_experts": "n_experts",
    "num_experts_per_tok": "top_k",
}
FURTHER = ("loss", "tokens", "seed", "learning_rate", "weight", "parameters", "active_parameters", "training_flops")
COLUMNS = tuple(dict.fromkeys([*SHAPE, *ALIASES, *FURTHER]))
COMPARISONS: dict[str, Callable[[AnyArray, AnyArray], BoolArray]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
LEAST_LOSS, MOST_LOSS = 0.01, 20.0


@dataclass(frozen=True, eq=False)
class Table:
    """Rows that are fitted: `numbers` by column name, notes on what was read how, the file's hash.

    A quantity of a law is a column of its name, or follows from the architecture's columns.
    """

    numbers: Mapping[str, FloatArray]
    lines: AnyArray
    notes: tuple[str, ...] = ()
    digest: str = ""
    _known: dict[str, FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def loss(self) -> FloatArray:
        """Natural-log loss per token, nats, (n,)."""
        return self.numbers["loss"]

    @property
    def weight(self) -> FloatArray:
        """Weight of each row, mean 1, (n,)."""
        given = self.numbers.get("weight", np.ones(len(self)))
        return np.asarray(given / given.mean())

    def feature(self, name: str) -> FloatArray:
        """A quantity of a law, (n,).

        Raises:
            ValueError: neither a column nor a consequence of others.
        """
        if name not in self._known:
            self._known[name] = self.numbers[name] if name in self.numbers else self._derived(name)
        return self._known[name]

    def _derived(self, name: str) -> FloatArray:
        if name == "tokens" and {"training_flops", "parameters"} <= set(self.numbers):
            return self.numbers["training_flops"] / (6.0 * self.numbers["parameters"])
        if name == "active_parameters" and "n_experts" not in self.numbers and "parameters" in self.numbers:
            return self.numbers["parameters"]
        if name == "parameters" and "n_experts" not in self.numbers and "active_parameters" in self.numbers:
            return self.numbers["active_parameters"]
        if name == "activation_rate" and {"top_k", "n_experts"} <= set(self.numbers):
            return self.numbers["top_k"] / self.numbers["n_experts"]
        if name == "tokens":
            raise ValueError("tokens: expected a column of training tokens, got none; add it (or training_flops)")
        return feature(self._architectures(name), name)

    def _architectures(self, wanted: str) -> Architectures:
        own = {name: self.numbers[name] for name in (*SHAPE, *ALIASES) if name in self.numbers}
        try:
            return Architectures.from_columns(own)
        except ValueError as error:
            lacking = next(iter(str(error).splitlines())).partition(":")[0]
            raise ValueError(
                f"{wanted}: expected the column or an architecture's, got none with {lacking}; add it or --rename one"
            ) from None

    def has(self, name: str) -> bool:
        """Whether a quantity is known."""
        try:
            self.feature(name)
        except ValueError:
            return False
        return True

    def __getitem__(self, rows: AnyArray) -> "Table":
        numbers = {name: column[rows] for name, column in self.numbers.items()}
        known = {name: column[rows] for name, column in self._known.items()}
        return Table(numbers, self.lines[rows], self.notes, self.digest, known)

    @property
    def levels(self) -> dict[str, FloatArray]:
        """Distinct values of every known quantity that varies."""
        found = {name: np.unique(self.feature(name)) for name in OWNERS if self.has(name)}
        if np.array_equal(found.get("parameters", 0), found.get("active_parameters", 1)):
            del found["active_parameters"]
        return {name: values for name, values in found.items() if len(values) > 1}

    @property
    def design(self) -> AnyArray:
        """Number of each row's design: equal architectures trained on equal tokens share one, (n,)."""
        names = [name for name in OWNERS if self.has(name)]
        stacked = np.stack([self.feature(name) for name in names]) if names else np.zeros((1, len(self)))
        return np.unique(stacked, axis=1, return_inverse=True)[1].reshape(-1)


def read_table(path: Path, renamed: Sequence[str] = (), where: Sequence[str] = ()) -> Table:
    """The rows of a CSV that `where` keeps, columns renamed OLD=NEW first.

    Raises:
        ValueError: a line a fault, each naming the column and the line of the file.
    """
    text = _text(path)
    header, body, lines = _rows(path, text)
    names, notes = _named(header, renamed, path)
    columns = {name: [row[i] for row in body] for i, name in enumerate(names)}
    as_written = {name: columns[new] for name, new in zip(header, names, strict=True)}
    keep, said = _kept({**as_written, **columns}, lines, where, path)
    columns = {name: [column[i] for i in keep] for name, column in columns.items()}
    numbers = _numbers(columns, lines[keep], path)
    digest = hashlib.sha256(text.encode()).hexdigest()
    table = Table(numbers, lines[keep], (*notes, *said), digest)
    _refuse(table, path)
    return Table(numbers, lines[keep], (*table.notes, *_remarks(table)), digest)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{path}: expected a readable CSV, got {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: expected UTF-8 text, got another encoding; save it as UTF-8") from None


def _rows(path: Path, text: str) -> tuple[list[str], list[list[str]], AnyArray]:
    """Header, rows, and the line of the file at which each row ends; empty lines are none."""
    if (count := len(text.splitlines())) > MOST_ROWS + 1:
        raise ValueError(
            f"{path}: expected at most {MOST_ROWS:,} rows, got {count - 1:,}; keep the final loss of each model"
        )
    reader = csv.reader(io.StringIO(text, newline=None), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise ValueError(f"{path}:{reader.line_num}: expected CSV, got {csv_fault(error)}; correct it") from None
    if len(rows) < 2:
        raise ValueError(f"{path}: expected a header and a row per trained model, got {len(rows)} lines; add them")
    header = [name.strip() for name in rows[0][1]]
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise ValueError(f"{path}:{line}: expected {len(header)} cells, got {len(row)}; correct the row")
    return header, [row for _, row in rows[1:]], np.array([line for line, _ in rows[1:]])


def _named(header: list[str], renamed: Sequence[str], path: Path) -> tuple[list[str], list[str]]:
    """Column names as this project spells them, and what was renamed."""
    asked = dict(pair.partition("=")[::2] for pair in renamed)
    for old, new in asked.items():
        if old not in header or not new:
            raise ValueError(
                f"rename: expected OLD=NEW with a column of {path}, got {old}={new}; it has {', '.join(header)}"
            )
    present, names, notes = set(header), [], []
    for old in header:
        plain = old.lower().replace(" ", "_")
        plain = plain if plain in COLUMNS and plain not in present else old
        found = asked.get(old, HUGGING_FACE.get(plain, plain))
        if found == "expert_size" and old == "intermediate_size" and "moe_intermediate_size" in present:
            found = old
        notes += [f"column {old} is read as {found}"] if found != old else []
        names.append(found)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{path}:1: expected each column once, got {twice} twice; rename or remove one")
    return names, notes


def _kept(
    columns: Mapping[str, list[str]], lines: AnyArray, where: Sequence[str], path: Path
) -> tuple[list[int], list[str]]:
    """Rows that every condition keeps, and how many each left out."""
    keep, notes = np.ones(len(lines), dtype=bool), []
    for condition in where:
        passes = _passes(condition, columns, path)
        out = lines[keep & ~passes]
        shown = ", ".join(str(line) for line in out[:5].tolist()) + (", …" if len(out) > 5 else "")
        notes.append(f"{len(out)} rows left out by {condition}" + (f" (lines {shown})" if len(out) else ""))
        keep &= passes
    if not keep.any():
        raise ValueError(f"where: expected conditions that leave rows, got {' and '.join(where)}; {path} has none")
    return np.flatnonzero(keep).tolist(), notes


def _passes(condition: str, columns: Mapping[str, list[str]], path: Path) -> BoolArray:
    parts = re.fullmatch(r"\s*(.+?)\s*(<=|>=|!=|=|<|>)\s*(.+?)\s*", condition)
    if parts is None or (parts[1] not in columns and parts[1] != "tokens_per_parameter"):
        known = ", ".join(columns)
        raise ValueError(
            f"where: expected COLUMN<VALUE with a column of {path} ({known}), got {condition!r}; correct it"
        )
    name, sign, text = parts.groups()
    cells = (
        _tokens_per_parameter(columns) if name not in columns else np.array([_number(cell) for cell in columns[name]])
    )
    limit = _number(text)
    if np.isfinite(limit):
        return np.asarray(COMPARISONS[sign](cells, np.asarray(limit)))
    if sign not in ("=", "!="):
        raise ValueError(f"where: expected a number after {sign}, got {text!r}; correct it")
    return np.asarray(COMPARISONS[sign](np.array([cell.strip() for cell in columns[name]]), np.asarray(text)))


def _tokens_per_parameter(columns: Mapping[str, list[str]]) -> FloatArray:
    found = {name: np.array([_number(cell) for cell in cells]) for name, cells in columns.items() if name in COLUMNS}
    try:
        tokens = Table(found, np.arange(len(next(iter(columns.values()))))).feature("tokens")
        return np.asarray(tokens / found["parameters"])
    except (KeyError, ValueError):
        raise ValueError("where: expected columns tokens and parameters for tokens_per_parameter; add them") from None


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _numbers(columns: Mapping[str, list[str]], lines: AnyArray, path: Path) -> dict[str, FloatArray]:
    """Known columns as numbers; others are not used."""
    numbers, faults = {}, []
    for name, cells in columns.items():
        if name not in COLUMNS:
            continue
        if not any(cell.strip() for cell in cells):
            continue
        values = np.array([_number(cell) for cell in cells])
        if not (fine := np.isfinite(values)).all():
            at = int(np.argmin(fine))
            faults.append(
                f"{path}:{lines[at]}: {name}: expected a number, got {cells[at]!r}; correct or leave out the row"
            )
        numbers[name] = values
    if "loss" not in numbers:
        faults.append(f"{path}: expected a column loss, got {', '.join(columns)}; rename one with --rename OLD=loss")
    if faults:
        raise ValueError("\n".join(faults))
    return numbers


def _refuse(table: Table, path: Path) -> None:
    faults = []
    if len(table) < 2:
        faults.append(f"{path}: expected a row per trained model, got one; a law needs more rows than coefficients")
    for name, values in table.numbers.items():
        if name in ("loss", "seed"):
            continue
        if (wrong := values <= 0).any():
            at = int(np.argmax(wrong))
            faults.append(
                f"{path}:{table.lines[at]}: {name}: expected a positive number, got {values[at]:g}; correct the row"
            )
    if (wrong := (table.loss < LEAST_LOSS) | (table.loss > MOST_LOSS)).any():
        at = int(np.argmax(wrong))
        faults.append(
            f"{path}:{table.lines[at]}: loss: expected nats per token between {LEAST_LOSS} and {MOST_LOSS:g}, "
            f"got {table.loss[at]:g}; a perplexity is exp(loss), bits are loss/ln 2"
        )
    elif len(table) > 1 and not np.ptp(table.loss):
        faults.append(
            f"{path}: loss: expected values that vary, got {table.loss[0]:g} in every row; a law has nothing to say"
        )
    more = table.numbers.get("top_k", np.ones(1)) > table.numbers.get("n_experts", np.full(len(table), np.inf))
    if more.any():
        at = int(np.argmax(more))
        k, e = table.numbers["top_k"][at], table.numbers["n_experts"][at]
        faults.append(f"{path}:{table.lines[at]}: top_k: expected at most n_experts {e:g}, got {k:g}; correct the row")
    if not faults:
        faults += _not_architectures(table, path)
    if faults:
        raise ValueError("\n".join(faults))


def _not_architectures(table: Table, path: Path) -> list[str]:
    """Rows that are no architecture, where the columns say a whole one."""
    own = {name: table.numbers[name] for name in (*SHAPE, *ALIASES) if name in table.numbers}
    try:
        Architectures.from_columns(own)
    except ValueError as error:
        if any("got nothing" in line for line in str(error).splitlines()):
            return []
        for row, line in enumerate(table.lines.tolist()):
            try:
                Architectures.from_columns({name: column[row : row + 1] for name, column in own.items()})
            except ValueError as fault:
                return [f"{path}:{line}: {text}" for text in str(fault).splitlines()]
        return [f"{path}: {error}"]
    return []


def _remarks(table: Table) -> list[str]:
    """What a reader should know of the rows before trusting a fit."""
    notes = []
    if {"training_flops", "parameters"} <= set(table.numbers) and "tokens" not in table.numbers:
        notes.append("tokens are training_flops / (6 parameters)")
    notes += [
        f"{name} is not constant: {table.numbers[name].min():.3g} to {table.numbers[name].max():.3g}"
        for name in ("tokens", "learning_rate")
        if name in table.numbers and np.ptp(table.numbers[name]) > 0.1 * table.numbers[name].min()
    ]
    for name in COUNTS:
        if name in table.numbers and (own := _count(table, name)) is not None:
            apart = float(np.abs(np.log(table.numbers[name] / own)).max())
            if apart > 0.02:
                notes.append(
                    f"{name} differs from the architecture's count by up to {100 * np.expm1(apart):.0f} %; the column is used"
                )
    identical = len(table) - len(np.unique(np.stack([table.design.astype(float), table.loss]), axis=1).T)
    if identical:
        notes.append(
            f"{identical} rows repeat another's design and loss to the last digit: copies, no replicates; all are kept"
        )
    if 0.9 < float(np.median(table.loss)) / 5.5 < 2.0:
        notes.append("half the losses are above 4.95: check that they are nats, not bits (bits · 0.693 = nats)")
    return notes


def _count(table: Table, name: str) -> FloatArray | None:
    try:
        return feature(table._architectures(name), name)
    except ValueError:
        return None
