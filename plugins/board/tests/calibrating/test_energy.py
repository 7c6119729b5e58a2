"""Energy fitted to metered rows: what is recovered, what is refused, what the public table gives."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.energy import BOARD, MODES, energy_of
from nas.study.catalogue import load_device
from objectives.device import Device
from objectives.loss_law.law import Law
from plas_board.calibrate.command import resolve
from plas_board.calibrating.energy import BASE, BYTE, FLOP, _made_of, calibrate_energy, fit_energy, metered
from plas_board.calibrating.measurements import Measurement, read

HEADER = "model,precision,batch,prompt_len,gen_len,metric,value,power_w,energy_j"
MODELS = {"Qwen3-0.6B": 900, "Qwen3-1.7B": 2300, "Qwen3-4B": 5200, "SmolLM2-135M": 300, "Llama-3.2-1B": 1700}
TRUE = np.array([2.5, 4e-12, 0.0])


def requests(lines: list[str]) -> list[Measurement]:
    """Rows of a measured CSV, all used."""
    rows, left = read([HEADER, *lines], "board", resolve)
    assert not left
    return rows


def shown(board: Device, law: Law, truth: np.ndarray = TRUE) -> list[Measurement]:
    """Whole requests of the models with the energy that `truth` gives them."""
    rows = requests([f"{model},int4,1,{512 + ms},{ms % 7 + 30},total_ms,{ms},1," for model, ms in MODELS.items()])
    joules = _made_of(rows, board, law) @ truth
    return [replace(row, joules=float(joule)) for row, joule in zip(rows, joules, strict=True)]


def test_power_times_time_and_joules_are_the_same_energy() -> None:
    whole, prefill, decode, given, none = requests(
        [
            "Qwen3-0.6B,int4,1,512,16,total_ms,2000,3,",
            "Qwen3-0.6B,int4,1,512,16,prefill_ms,500,4,",
            "Qwen3-0.6B,int4,1,512,16,tpot_ms,50,5,",
            "Qwen3-0.6B,int4,1,512,16,total_ms,2000,3,7.5",
            "Qwen3-0.6B,int4,1,512,16,total_ms,2000,,",
        ]
    )
    assert [m.joules for m in (whole, prefill, decode, given, none)] == pytest.approx([6, 2, 4, 7.5, None])
    assert list(metered([whole, none]).values()) == [[whole]]


@pytest.mark.parametrize(("column", "text"), [("power_w", "-3"), ("energy_j", "much")])
def test_other_energies_are_left_out_by_name(column: str, text: str) -> None:
    rows, left = read([f"model,prompt_len,metric,value,{column}", f"Qwen3-0.6B,9,total_ms,5,{text}"], "b", resolve)
    assert not rows
    assert left[0].reason.startswith(f"{column}: expected a positive number, got '{text}'")


def test_coefficients_are_recovered_and_models_predicted(board: Device, law: Law) -> None:
    group = calibrate_energy(shown(board, law), [], board, law, "made up")
    assert group.energy.base_power == pytest.approx(2.5, rel=1e-3)
    assert group.energy.per_flop == pytest.approx(4e-12, rel=1e-3)
    np.testing.assert_allclose(group.held_out, group.measured, rtol=1e-4)
    assert np.isnan(group.from_times).all()
    assert (group.energy.held_out, group.energy.rows, group.energy.experts) == ([], 5, False)
    assert not group.doubts()


def test_a_row_far_off_hardly_moves_the_others(board: Device, law: Law) -> None:
    rows = shown(board, law)
    rows.append(replace(rows[0], model="broken", joules=3 * (rows[0].joules or 0.0)))
    made_of, joules = _made_of(rows, board, law), np.array([m.joules for m in rows], dtype=np.float64)
    weights = fit_energy(made_of, joules, [BASE, FLOP])
    np.testing.assert_allclose(made_of[:-1] @ weights, joules[:-1], rtol=0.12)


def test_bytes_count_only_where_they_help_models_held_out(board: Device, law: Law) -> None:
    without = calibrate_energy(shown(board, law), [], board, law, "s")
    needed = calibrate_energy(shown(board, law, np.array([0.5, 1e-12, 2e-10])), [], board, law, "s")
    assert without.energy.per_byte < 1e-13
    assert needed.energy.per_byte == pytest.approx(2e-10, rel=1e-2)
    assert fit_energy(_made_of(shown(board, law), board, law), np.ones(5), [BASE, FLOP])[BYTE] == 0


def test_of_two_models_nothing_is_held_out_and_the_group_is_doubted(board: Device, law: Law) -> None:
    group = calibrate_energy(shown(board, law)[:2], [], board, law, "s")
    assert group.energy.held_out_error is None
    assert "too few" in group.doubts()[0]
    assert "which rail" in group.remarks()[0]


@pytest.mark.parametrize("mode", MODES)
def test_the_public_table_is_predicted_and_gives_what_ships(mode: str, external_data: Path) -> None:
    group = energy_of(external_data, mode)
    held_out, from_times = group.errors(group.held_out), group.errors(group.from_times)
    assert held_out[2] == from_times[2] == len(group.rows) == 6
    assert held_out[0] <= 0.08
    assert held_out[1] <= 0.20
    assert from_times[0] <= 0.16
    assert from_times[1] <= 0.20
    shipped = {energy.mode: energy for energy in load_device(BOARD).energy}
    found = group.energy.model_copy(update={"source": shipped[group.energy.mode].source})
    assert shipped[group.energy.mode] == found
