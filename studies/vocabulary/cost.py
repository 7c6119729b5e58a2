"""What vocabularies cost by published runs, and how well bodies and vocabularies left out, or runs of a table of yours, are predicted.

    python -m studies.vocabulary.cost [TABLE …] [--write-costs FILE]

A table has the columns parameters (without embeddings), vocabulary, characters, unigram_normalised_loss.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from nas.document.document import Column, Document, Section, Table, figures, table_of
from nas.files import yaml_source
from nas.files.tables import write
from nas.files.yaml_source import dump
from nas.terminal.console import Stages
from nas.terminal.tables import show
from objectives.plugins import documents, folder
from objectives.table import Sheet, not_numbers, numbers_of, read_sheet
from objectives.text.vocabulary_cost import REFERENCE, VocabularyCost
from objectives.token_curve import TokenCurve
from search_spaces.arrays import AnyArray, FloatArray

DATA = (
    2085.43,
    0.3658,
    32_000,
)  # B, β, and V of its tokens. Source: Besiroglu et al. 2024, as law chinchilla_epoch has it
BODY, ROBUST = 1.5e8, 0.02  # parameters at which a is what a body lacks; nats beyond which a residual counts less
BOUNDS = ((-8.0, -5.0, 0.02, -8.0, 0.02), (1.0, 2.0, 1.5, 1.0, 3.0))  # of ln e, ln a, α, ln scale, exponent
STARTS = 6


@dataclass(frozen=True, eq=False)
class VocabularyRuns:
    """Trained models of several vocabularies, columns (n,): N without embeddings, V, bytes of text, and the loss less that of single tokens, nats per token."""

    parameters: FloatArray
    vocabulary: FloatArray
    text: FloatArray
    loss: FloatArray

    def __len__(self) -> int:
        return len(self.loss)

    def __getitem__(self, rows: AnyArray) -> "VocabularyRuns":
        return VocabularyRuns(self.parameters[rows], self.vocabulary[rows], self.text[rows], self.loss[rows])


@dataclass(frozen=True)
class FittedCost:
    """The coefficients of what a vocabulary costs.

    Nats per byte at equal body of N parameters and equal text of H bytes are (e + a (N / 1.5e8)^−α + data(H)) · (1 + scale ·
    (V / 16,384)^−exponent). The data term is that of a published law, since within these runs text goes with the body.
    """

    e: float
    a: float
    alpha: float
    scale: float
    exponent: float

    def losses(self, runs: VocabularyRuns, curve: TokenCurve) -> FloatArray:
        """Predicted loss less that of single tokens, nats per token, (n,)."""
        b, beta, size = DATA
        held = float(curve.bytes_per_token(size))
        body = self.e + self.a * (runs.parameters / BODY) ** -self.alpha + b * (runs.text / held) ** -beta / held
        per_byte = body * (1.0 + self.scale * (runs.vocabulary / REFERENCE) ** -self.exponent)
        return per_byte * curve.bytes_per_token(runs.vocabulary) - curve.unigram_nats(runs.vocabulary)


def fitted(runs: VocabularyRuns, curve: TokenCurve, starts: int = STARTS) -> FittedCost:
    """The fit of least squares, soft beyond 0.02 nats, the best of several starts."""
    low, high = (np.array(ends) for ends in BOUNDS)

    def residuals(p: FloatArray) -> FloatArray:
        return _of(p).losses(runs, curve) - runs.loss

    starting = low + (high - low) * np.random.default_rng(0).uniform(0.2, 0.8, (starts, len(low)))
    fits = [least_squares(residuals, s, bounds=(low, high), loss="soft_l1", f_scale=ROBUST) for s in starting]
    return _of(min(fits, key=lambda fit: fit.cost).x)


def _of(p: FloatArray) -> FittedCost:
    return FittedCost(*(float(value) for value in (np.exp(p[0]), np.exp(p[1]), p[2], np.exp(p[3]), p[4])))


def refitted(runs: VocabularyRuns, curve: TokenCurve, draws: int, seed: int = 0) -> list[FittedCost]:
    """Fits to bodies drawn with replacement, and of each its runs drawn with replacement."""
    rng, bodies, fits = np.random.default_rng(seed), np.unique(runs.parameters), []
    for _ in range(draws):
        parts = [np.flatnonzero(runs.parameters == body) for body in rng.choice(bodies, len(bodies))]
        rows = np.concatenate([rng.choice(part, len(part)) for part in parts])
        fits.append(fitted(runs[rows], curve, starts=2))
    return fits


RUNS = folder("objectives.text") / "tao_2024.csv"
CURVE = "slimpajama"
DRAWS = 64
SHOWN = (4096, 8192, 16_384, 32_768, 65_536, 98_304, 131_072)
BESIDE = 65_536
COLUMNS = {
    "parameters": ("parameters", "non_vocab_parameters", "Non_vocab_parameters"),
    "vocabulary": ("vocabulary", "vocab_size"),
    "text": ("characters", "num_characters", "bytes"),
    "loss": ("unigram_normalised_loss", "unigram_normalized_loss", "Lossu"),
}
LEFT_OUT = (
    Column("left out", words=True),
    *figures({"runs": ",", "rms, nats per token": ".4f", "best": ",.0f", "predicted": ",.0f"}),
)
READING = (
    "Errors are of the loss less that of single tokens: of a body's differences between vocabularies, of a vocabulary the loss "
    "itself. best: the vocabulary of least such loss at equal text. It is no measure of quality by itself: at equal bits per byte "
    "it differs between vocabularies."
)
SOURCE = (
    "45 runs of Tao et al. 2024 (arXiv 2407.13623): nine vocabularies, five bodies of 33 M to 1.1 B; docs/vocabulary.md"
)


@dataclass(frozen=True, eq=False)
class Judged:
    """Runs that were left out: what they were, and errors of the loss less that of single tokens, nats per token, (n,).

    best, predicted_best: the vocabulary of least such loss at equal text, of a body; None of other runs.
    """

    name: str
    errors: FloatArray
    best: float | None = None
    predicted_best: float | None = None

    @property
    def rms(self) -> float:
        """Root mean square of the errors."""
        return float(np.sqrt(np.mean(self.errors**2)))


def main() -> None:
    """Fit the cost to the runs, judge it on runs left out and on tables, print and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="*")
    parser.add_argument("--write-costs", type=Path)
    given = parser.parse_args()
    runs, curve, stage = read_runs(RUNS), _curve(), Stages(quiet=False)
    tables = {path.name: read_runs(path) for path in given.tables}
    stage("all runs")
    fit = fitted(runs, curve)
    stage(f"{DRAWS} draws of the runs")
    cost = _cost(fit, refitted(runs, curve, DRAWS), runs)
    stage("runs left out")
    record = {"bodies": bodies_left_out(runs, curve), "vocabularies": vocabularies_left_out(runs, curve)}
    record |= {name: of_table(fit, table, curve) for name, table in tables.items()}
    stage.close()
    if given.write_costs is not None:
        # beside a law's tokenizer, as studies take it
        kept = cost.model_dump(mode="json", exclude={"relative_to", "here"})
        write(given.write_costs, "# Made by studies.vocabulary.cost.\n" + dump(kept))
    show(cost_document(cost, record), as_json=False)


@cache
def _curve() -> TokenCurve:
    content, _ = yaml_source.read(documents("objectives.token_curves")[CURVE])
    return TokenCurve.model_validate(content)


def read_runs(path: Path) -> VocabularyRuns:
    """Runs of a table: of moments of one body and vocabulary the last, at which its learning rate has decayed.

    Raises:
        ValueError: the file cannot be read, or lacks a column.
    """
    sheet = read_sheet(path, "run")
    table = np.stack([_column(sheet, choices) for choices in COLUMNS.values()], axis=1)
    last = {(row[0], row[1]): row for row in table[np.argsort(table[:, 2], kind="stable")]}
    return VocabularyRuns(*np.array([last[key] for key in sorted(last)]).T)


def _column(sheet: Sheet, choices: Sequence[str]) -> FloatArray:
    """The numbers of the first column of these names."""
    column = next((choice for choice in choices if choice in sheet.header), None)
    if column is None:
        raise ValueError(
            f"{sheet.path}: expected a column {' or '.join(choices)}, got {', '.join(sheet.header)}; add it"
        )
    cells = sheet.columns[column]
    values = numbers_of(cells)
    if not np.isfinite(values).all():
        raise ValueError(not_numbers(sheet.path, sheet.lines, ~np.isfinite(values), column, cells))
    return values


def bodies_left_out(runs: VocabularyRuns, curve: TokenCurve) -> list[Judged]:
    """Each body by the fit to the others: differences between its vocabularies, at equal text."""
    return [
        _of_body(fitted(runs[runs.parameters != body], curve), runs[runs.parameters == body], curve)
        for body in np.unique(runs.parameters)
    ]


def of_table(fit: FittedCost, runs: VocabularyRuns, curve: TokenCurve) -> list[Judged]:
    """Each body of further runs by the fit to all of this package."""
    judged = [_of_body(fit, runs[runs.parameters == body], curve) for body in np.unique(runs.parameters)]
    return [one for one in judged if len(one.errors) > 1]


def _of_body(fit: FittedCost, runs: VocabularyRuns, curve: TokenCurve) -> Judged:
    """Errors of the differences of one body's runs from their mean, and its vocabulary of least loss at the least text of them."""
    predicted = fit.losses(runs, curve)
    least = VocabularyRuns(runs.parameters, runs.vocabulary, np.full(len(runs), runs.text.min()), runs.loss)
    to_equal_text = fit.losses(least, curve) - predicted
    errors = predicted - runs.loss
    fine = np.geomspace(runs.vocabulary.min(), runs.vocabulary.max(), 400)
    grid = VocabularyRuns(np.full(400, runs.parameters[0]), fine, np.full(400, runs.text.min()), np.zeros(400))
    return Judged(
        f"{runs.parameters[0]:.3g} parameters",
        errors - errors.mean(),
        lowest(runs.vocabulary, runs.loss + to_equal_text),
        float(fine[int(np.argmin(fit.losses(grid, curve)))]),
    )


def lowest(sizes: FloatArray, losses: FloatArray) -> float:
    """Where a parabola in ln V through the lowest of measured losses and its neighbours is lowest; at an end the end."""
    at = int(np.argmin(losses))
    if at in (0, len(sizes) - 1):
        return float(sizes[at])
    square, slope, _ = np.polyfit(np.log(sizes[at - 1 : at + 2]), losses[at - 1 : at + 2], 2)
    return float(np.exp(-slope / (2 * square)))


def vocabularies_left_out(runs: VocabularyRuns, curve: TokenCurve) -> list[Judged]:
    """Each vocabulary by the fit to the others, the loss itself."""
    judged = []
    for size in np.unique(runs.vocabulary):
        out = runs[runs.vocabulary == size]
        errors = fitted(runs[runs.vocabulary != size], curve).losses(out, curve) - out.loss
        judged.append(Judged(f"{size:,.0f} tokens", errors))
    return judged


def _cost(fit: FittedCost, draws: Sequence[FittedCost], runs: VocabularyRuns) -> VocabularyCost:
    return VocabularyCost(
        scale=float(f"{fit.scale:.6g}"),
        exponent=float(f"{fit.exponent:.6g}"),
        draws=tuple((float(f"{drawn.scale:.6g}"), float(f"{drawn.exponent:.6g}")) for drawn in draws),
        fitted_on=(int(runs.vocabulary.min()), int(runs.vocabulary.max())),
        relative_to=BESIDE,
        source=SOURCE,
    )


def cost_document(cost: VocabularyCost, record: Mapping[str, Sequence[Judged]]) -> Document:
    """The cost, and every run left out."""
    title = f"What a vocabulary costs, % of the loss per byte beside {BESIDE:,} tokens, at equal body and text"
    draws = np.array([cost.drawn(np.ones((DRAWS, 1)), np.array([size]))[:, 0] for size in SHOWN])
    low, high = 100 * (np.quantile(draws, [0.05, 0.95], axis=1) - 1)
    priced = [100 * (float(cost.priced(np.ones(1), size)[0]) - 1) for size in SHOWN]
    rows = [
        (f"{size:,}", f"{own:+.1f}", f"{least:+.1f} to {most:+.1f}")
        for size, own, least, most in zip(SHOWN, priced, low, high, strict=True)
    ]
    sections = [Section(title, (table_of(("vocabulary", "%", "90 %"), rows),))]
    for way, judged in record.items():
        together = np.sqrt(np.mean(np.concatenate([run.errors for run in judged]) ** 2)) if judged else np.nan
        cells = tuple((run.name, len(run.errors), run.rms, run.best, run.predicted_best) for run in judged)
        table = Table(LEFT_OUT, cells, notes=(f"rms of all: {together:.4f}",))
        sections.append(Section(f"Left out: {way}" if way in ("bodies", "vocabularies") else way, (table,)))
    return Document(title, (*sections, Section("", (READING,))))


if __name__ == "__main__":
    main()
