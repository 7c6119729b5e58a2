"""Losses in bits are noticed below the height at which they are obvious, or converted where their column says so."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from objectives.loss_law.law import Law
from plas_fit.fitting.portability import doubt
from plas_fit.fitting.trained_models import Table, read_table

Csv = Callable[[str], Path]
Simulate = Callable[..., Table]
SIZES = "parameters,tokens,{}\n1e8,1e10,{}\n4e8,1e10,{}\n"
BIT = 1.0 / math.log(2.0)


def in_bits(table: Table) -> Table:
    return Table({**table.numbers, "loss": table.loss * BIT}, table.lines)


def test_bits_below_any_height_are_noticed_by_a_law_given_beforehand(law: Law, simulated: Simulate) -> None:
    """As losses of the paper's law, the median of which stays below the height that is always asked about."""
    table = simulated(60, 0.02, 0)
    table = table[np.argsort(table.loss)[:30]]
    assert np.median(table.loss) * BIT < 4.95
    assert doubt(table, law) is None
    said = doubt(in_bits(table), law)
    assert said is not None
    assert "look like bits: hw_codesign predicts them to" in said


@pytest.mark.parametrize(
    ("file", "size", "tokens", "loss"),
    [
        ("gemstones_hot", "params_active_precise", "tokens", "final_loss"),
        ("fineweb_13b", "parameters", "tokens", "loss"),
        ("chinchilla_epoch", "Model Size", "Training FLOP", "loss"),
    ],
)
def test_public_losses_are_nats_and_their_bits_are_noticed(
    file: str, size: str, tokens: str, loss: str, law: Law, external_data: Path
) -> None:
    known = pd.read_csv(external_data / "loss" / f"{file}.csv")
    trained = known[tokens] / (6 * known[size]) if "FLOP" in tokens else known[tokens]
    columns = {"active_parameters": known[size], "tokens": trained, "loss": known[loss]}
    table = Table({name: column.to_numpy(dtype=float) for name, column in columns.items()}, np.arange(len(known)))
    assert doubt(table, law) is None
    said = doubt(in_bits(table), law)
    assert said is not None
    assert "may be bits" in said


@pytest.mark.parametrize("name", ["loss_bits", "bits_per_token", "metrics.val_loss_bits"])
def test_a_column_of_bits_is_converted_and_said(name: str, csv: Csv) -> None:
    table = read_table(csv(SIZES.format(name, 4.2, 4.0)))
    assert table.loss == pytest.approx(np.array([4.2, 4.0]) * math.log(2))
    assert f"{name} is read as bits: nats are bits · 0.693" in table.notes


def test_the_unit_can_be_said(csv: Csv) -> None:
    path = csv(SIZES.format("loss", 5.6, 5.4))
    assert any("not bits" in note for note in read_table(path).notes)
    assert not any("not bits" in note for note in read_table(path, unit="nats").notes)
    assert read_table(path, unit="bits").loss == pytest.approx(np.array([5.6, 5.4]) * math.log(2))


def test_bits_per_byte_are_refused_with_what_is_missing(csv: Csv) -> None:
    with pytest.raises(ValueError, match=r"got bpb, bits per byte; loss = value · 0\.693 · bytes per token"):
        read_table(csv(SIZES.format("bpb", 1.1, 1.0)))


def test_a_renamed_loss_that_may_be_bits_is_a_question(csv: Csv) -> None:
    path = csv(SIZES.format("nll (bits)", 4.2, 4.0))
    renamed = ["nll (bits)=loss"]
    with pytest.raises(ValueError, match=r"got nll \(bits\); say it: --loss-unit bits or --loss-unit nats"):
        read_table(path, renamed)
    assert read_table(path, renamed, unit="nats").loss.tolist() == [4.2, 4.0]
    assert read_table(path, renamed, unit="bits").loss[0] == pytest.approx(4.2 * math.log(2))


@pytest.mark.parametrize(("loss", "asked"), [(4.94, False), (4.96, True), (10.9, True), (11.1, False)])
def test_heights_that_bits_have_are_asked_about(loss: float, asked: bool, csv: Csv) -> None:
    table = read_table(csv(SIZES.format("loss", loss + 0.001, loss - 0.001)))
    assert any("check that they are nats" in note for note in table.notes) is asked


@pytest.mark.parametrize("bytes_per_token", [3.0, 4.3])
@pytest.mark.parametrize("unit", [1.0, BIT])
def test_losses_of_a_byte_are_noticed(bytes_per_token: float, unit: float, law: Law) -> None:
    """Nats or bits per byte lie far below what their size and tokens make usual per token, and are no law's loss as they are."""
    random = np.random.default_rng(0)
    size, tokens = np.exp(random.uniform(17, 22, 30)), np.exp(random.uniform(21, 25, 30))
    loss = 1.8172 + 482.01 / size**0.3478 + 2085.43 / tokens**0.3658
    table = Table({"active_parameters": size, "tokens": tokens, "loss": loss}, np.arange(30))
    assert doubt(table, law) is None
    said = doubt(Table({**table.numbers, "loss": loss * unit / bytes_per_token}, table.lines), law)
    assert said is not None
    assert "may be per byte or per character" in said


def test_small_trainings_of_a_few_tokens_are_not_asked_about(law: Law) -> None:
    """A family of large models says 48 nats of them, where bytes as tokens give 2.7: nothing is usual there."""
    columns = {"active_parameters": [74176.0, 197376.0], "tokens": [60416.0, 60416.0], "loss": [2.74, 2.79]}
    table = Table({name: np.array(column) for name, column in columns.items()}, np.arange(2))
    assert doubt(table, law) is None
