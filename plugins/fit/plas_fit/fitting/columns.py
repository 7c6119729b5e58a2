"""Names of a table's columns as this project spells them: exact names of others, also behind a tracker's prefix, are known."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from objectives.display_text import in_a_command
from objectives.loss_law.form import Form, Term
from objectives.loss_law.layer_deltas import SHARES, Kind
from objectives.table import NOT_FINITE, fault, listed, mended, number, numbers_of
from objectives.table_names import ALIAS, bare, in_small_letters, inexact, meant_by
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray
from search_spaces.columns import ALIASES, CODES, SHAPE, worded
from search_spaces.layer_kinds import KIND_DEFAULTS

BESIDE = ("learning_rate", "batch", "seed")  # of a run, in no law
FURTHER = (*("loss", "tokens", "weight", *BESIDE), *("parameters", "active_parameters", "training_flops"))
COLUMNS = tuple(dict.fromkeys([*SHAPE, *ALIASES, *FURTHER, *KIND_DEFAULTS]))
BITS = ("loss_bits", "bits_per_token", "val_loss_bits", "eval_loss_bits")
SETS = ("eval", "val", "valid", "validation", "test", "held_out", "heldout")
LOSSES = (
    *("loss", *BITS),
    *(f"{final}{data}{mark}loss" for final in ("", "final_") for data in SETS for mark in "/_."),
)
NO_LOSSES = {  # parts of names of what no law is of, and what to do
    "ppl": 'a perplexity; df["loss"] = np.log(df["{}"])',
    "perplexity": 'a perplexity; df["loss"] = np.log(df["{}"])',
    "bpb": "bits per byte; loss = value · 0.693 · bytes per token, of your tokeniser and text: add that column",
    "bits_per_byte": "bits per byte; loss = value · 0.693 · bytes per token, of your tokeniser and text: add that column",
    "bpc": "bits per character; loss = value · 0.693 · characters per token, of your tokeniser and text: add that column",
    "bits_per_char": "bits per character; loss = value · 0.693 · characters per token, of your tokeniser and text: add that column",
}


@dataclass(frozen=True)
class Names:
    """Each column's name here in the file's order, what was renamed, the loss as the file spells it, every fault of a name, and of those that are nearly known what they mean."""

    columns: tuple[str, ...]
    notes: tuple[str, ...]
    loss: str
    faults: tuple[str, ...]
    meant: Mapping[str, str]


def named(header: Sequence[str], renamed: Sequence[str], path: Path) -> Names:
    """The columns of a file by the names they have here.

    Raises:
        ValueError: a renaming of no column.
    """
    asked = dict(pair.partition("=")[::2] for pair in renamed)
    for old, new in asked.items():
        if old not in header or not new:
            raise ValueError(
                f"rename: expected OLD=NEW with a column of {path}, got {old}={new}; it has {', '.join(header)}"
            )
    loss, faults = _loss(header, asked, path)
    taken = {*asked.values(), *(name for name in header if name in COLUMNS and name not in asked)}
    names = [asked.get(old) or ("loss" if old == loss else _named(old, header, taken)) for old in header]
    faults += _unique(names, header, path)
    pairs = list(zip(header, names, strict=True))
    notes = [f"column {old} is read as {new}" for old, new in pairs if new in COLUMNS and old != new]
    notes += [
        f"column {old} is not used beside {ALIAS[bare(old)]}"
        for old, new in pairs
        if new not in COLUMNS and ALIAS.get(bare(old)) in names
    ]
    unread = [old for old, new in pairs if new not in COLUMNS]
    wanted = {*COLUMNS} - {"loss", *BESIDE}
    faults += inexact(unread, names, wanted, path)
    meant = {old: name for old, (name, _) in meant_by(unread, names, wanted).items()}
    return Names(tuple(names), tuple(notes), loss, tuple(faults), meant)


def _unique(names: list[str], header: Sequence[str], path: Path) -> list[str]:
    """Faults of names that several columns have, which none of them keeps; of what no law reads the first keeps it."""
    faults = []
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        places = [place for place, other in enumerate(names) if other == name]
        if name in BESIDE:
            for place in places[1:]:
                names[place] = header[place]
            continue
        both = [header[place] for place in places]
        faults.append(
            f"{path}:1: expected each column once, got {name} twice ({', '.join(both)}); "
            f"keep one with {_rename(both[0], name)}, or remove one"
        )
        for place in places:
            names[place] = f"{name} of column {place + 1}"
    return faults


def _named(old: str, header: Sequence[str], taken: Collection[str]) -> str:
    plain = bare(old)
    if plain == "intermediate_size" and any(bare(name) == "moe_intermediate_size" for name in header):
        return old
    name = ALIAS.get(plain, plain)
    return name if name in COLUMNS and name != "loss" and name not in taken else old


def _rename(old: str, new: str) -> str:
    return f"--rename {in_a_command(f'{old}={new}')}"


def _loss(header: Sequence[str], asked: dict[str, str], path: Path) -> tuple[str, list[str]]:
    """The column that holds the loss, as the file spells it, "" for none; faults where several may, or none in nats does."""
    chosen = [old for old, new in asked.items() if new == "loss"]
    if not chosen:
        left = [old for old in header if old not in asked]
        chosen = ["loss"] if "loss" in left else [old for old in left if bare(old) in LOSSES]
    if len(chosen) > 1:
        shown = ", ".join(chosen)
        return "", [
            f"{path}:1: expected one column of held-out losses, got {shown}; choose with {_rename(chosen[0], 'loss')}"
        ]
    for old in chosen or header:
        for part, what in NO_LOSSES.items():
            if re.search(rf"(?<![a-z]){part}(?![a-z])", old.lower()):
                return (old if chosen else ""), [f"{path}:1: expected nats per token, got {old}, {what.format(old)}"]
    if not chosen:
        meant = next((old for old in header if in_small_letters(old) in LOSSES), "OLD")
        return "", [
            f"{path}: expected a column loss, got {', '.join(header)}; rename one with {_rename(meant, 'loss')}"
        ]
    return chosen[0], []


KEPT = ("loss", "weight", *KIND_DEFAULTS)  # columns that every fit uses, or whose empty cells mean none
DENSE = dict.fromkeys(("n_experts", "top_k"), " (of a dense model write 1)")
LEAST_LOSS, MOST_LOSS = 0.01, 20.0
LEAST_COUNTS = {
    "parameters": 1e4,
    "active_parameters": 1e4,
    "tokens": 1e5,
}  # where no row has so many, their unit was left out
TRUTHS = {"true": 1.0, "false": 0.0}  # of Python and JSON


def numbers_in(
    columns: Mapping[str, list[str]], lines: AnyArray, path: Path
) -> tuple[dict[str, FloatArray], dict[str, str], list[str], list[str]]:
    """Known columns as numbers, those with empty cells as the fault that they are if a law needs them, what is not used, and other faults.

    Empty cells of layer kinds are none of the kind. What no law reads (seed, learning rate, batch) is not used where a cell is no number.
    """
    numbers, empty, notes, faults = {}, {}, [], []
    for name, cells in columns.items():
        if name not in COLUMNS or (name != "loss" and not any(cells)):
            continue
        values = of_kinds(name, cells) if name in KIND_DEFAULTS else numbers_of(cells)
        wrong = ~np.isfinite(values)
        if wrong.any() and name in BESIDE:
            notes.append(f"{name} is not used: {cells[int(np.argmax(wrong))]!r} is no number (line {lines[wrong][0]})")
            continue
        if wrong.any():
            wanted = f"one of {', '.join(CODES[name])}" if name in CODES else "a number"
            said = fault(path, lines, wrong, name, wanted, list(map(repr, cells)), _remedy(name, cells, wrong))
            if name not in KEPT and not any(cells[row] for row in np.flatnonzero(wrong)):
                empty[name] = said
                notes.append(f"{name} is not used: {wrong.sum()} empty cells{listed(lines[wrong])}")
                continue
            faults.append(said)
        numbers[name] = values
    return numbers, empty, notes, faults


def _remedy(name: str, cells: Sequence[str], wrong: BoolArray) -> str:
    cell = cells[int(np.argmax(wrong))]
    if cell:
        return "correct it" if name in CODES else mended(name, cell)
    return f"correct it{DENSE.get(name, '')}, or leave such rows out with --where {in_a_command(f'{name}>0')}"


def converged(columns: Mapping[str, list[str]], lines: AnyArray, path: Path) -> tuple[BoolArray, list[str]]:
    """Rows (n,) whose loss is not infinite or "nan", as a diverged run's is, and how many others there are.

    Raises:
        ValueError: every run diverged.
    """
    out = np.array([cell in NOT_FINITE for cell in columns.get("loss", [])], dtype=bool)
    if not out.any():
        return np.ones(len(lines), dtype=bool), []
    if out.all():
        raise ValueError(f"{path}: loss: expected finite losses, got none; every run diverged, add runs that did not")
    return ~out, [f"{out.sum()} rows of diverged runs (loss inf or nan) left out{listed(lines[out])}"]


def of_kinds(name: str, cells: Sequence[str]) -> FloatArray:
    """A column of layer kinds as numbers, (n,): words by their places, empty cells as none, NaN for anything else."""
    words = {word: float(place) for place, word in enumerate(CODES[name])} if name in CODES else TRUTHS
    numeric = name not in CODES
    return np.array([words.get(cell.lower(), number(cell) if numeric else np.nan) if cell else 0.0 for cell in cells])


def out_of_range(numbers: Mapping[str, FloatArray], lines: AnyArray, path: Path) -> list[str]:
    """Counts that are not positive, losses that are no nats, more active experts than there are; columns and lines (n,)."""
    faults = []

    def add(wrong: BoolArray, name: str, expected: str, remedy: str) -> None:
        if wrong.any():
            got = [f"{value:g}" for value in numbers[name].tolist()]
            faults.append(fault(path, lines, wrong, name, expected, got, remedy))

    for name, values in numbers.items():
        if name not in ("loss", "checkpoint", *BESIDE, *KIND_DEFAULTS):
            add(values <= 0, name, "a positive number", f"correct the row{DENSE.get(name, '')}")
    rates = numbers.get("activation_rate", np.ones(1))
    add(
        rates > 1,
        "activation_rate",
        "a share of at most 1",
        'df["activation_rate"] = df["activation_rate"] / 100 of percentages',
    )
    for name, least in LEAST_COUNTS.items():
        if name in numbers and (values := numbers[name]).size:
            wrong = _too_few(numbers, values) if name == "tokens" else np.full(len(lines), values.max() < least)
            unit = "1e9 of billions" if name == "tokens" else "1e6 of millions"
            add(wrong & (values > 0), name, "a count", f'df["{name}"] = df["{name}"] * {unit}')
    if "tokens" not in numbers and {"training_flops", "parameters"} <= numbers.keys():
        flops = numbers["training_flops"]
        few = _too_few(numbers, flops / (6.0 * numbers["parameters"]))
        add((flops > 0) & few, "training_flops", "FLOP of a training", "write FLOP, 6e18 where 6 EFLOP are meant")
    if (loss := numbers.get("loss")) is not None:
        expected = f"nats per token between {LEAST_LOSS} and {MOST_LOSS:g}"
        add((loss < LEAST_LOSS) | (loss > MOST_LOSS), "loss", expected, "a perplexity is exp(loss), bits are loss/ln 2")
    experts = numbers.get("n_experts", np.full(len(lines), np.inf))
    if (more := numbers.get("top_k", np.ones(1)) > experts).any():
        add(more, "top_k", f"at most n_experts {experts[int(np.argmax(more))]:g}", "correct the row")
    return faults


def _too_few(numbers: Mapping[str, FloatArray], tokens: FloatArray) -> BoolArray:
    """Rows (n,) of so few training tokens that their unit was left out: below 100,000 and a token for each thousand parameters.

    Where the parameters are unknown, or lack their unit too, all rows or none.
    """
    few, shaped = tokens < LEAST_COUNTS["tokens"], {"depth", "width"} <= numbers.keys()
    models = numbers["depth"] * numbers["width"] ** 2 if shaped else numbers.get("parameters")
    if models is None or ("depth" not in numbers and models.max() < LEAST_COUNTS["parameters"]):
        return np.asarray(few & few.all())
    return np.asarray(few & (tokens < models / 1000))


def not_architectures(numbers: Mapping[str, FloatArray], lines: AnyArray, path: Path) -> list[str]:
    """Rows that are no architecture, where the columns say a whole one."""
    own = own_columns(numbers)
    try:
        Architectures.from_columns(own)
    except ValueError as error:
        if any("got nothing" in line for line in str(error).splitlines()):
            return []
        for row, line in enumerate(lines.tolist()):
            try:
                Architectures.from_columns({name: column[row : row + 1] for name, column in own.items()})
            except ValueError as fault:
                return [f"{path}:{line}: {text}" for text in str(fault).splitlines()]
        return [f"{path}: {error}"]
    return []


def own_columns(numbers: Mapping[str, FloatArray]) -> dict[str, AnyArray]:
    """The columns of a table that say an architecture."""
    plain: dict[str, AnyArray] = {name: numbers[name] for name in (*SHAPE, *ALIASES) if name in numbers}
    kinds = {name: numbers[name] for name in KIND_DEFAULTS if name in numbers}
    return plain | {
        name: worded(name, column.astype(np.int64)) if name in CODES else column for name, column in kinds.items()
    }


def beside_kinds(form: Form, kinds: Collection[Kind]) -> Form:
    """A form with a term for each kind, `delta_KIND` times its share of the layers.

    Raises:
        ValueError: a form whose terms add up to the logarithm of the loss, beside which no nats stand.
    """
    added = {name: kind for name, kind in SHARES.items() if kind in kinds and name not in form.terms}
    if not added:
        return form
    if form.of != "loss":
        raise ValueError(
            "form: expected terms that add up to the loss beside layers of several kinds, whose deltas are nats, got terms of "
            "its logarithm; choose another form"
        )
    terms = {name: Term(scale=coefficient(kind), any_sign=True) for name, kind in added.items()}
    return Form(**{**dict(form), "terms": {**form.terms, **terms}})


def coefficient(kind: Kind) -> str:
    """The name of a kind's delta among coefficients."""
    return f"delta_{kind}"
