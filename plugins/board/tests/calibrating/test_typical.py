"""What is typical of a class: of every cell a profile, its times slower by its ratio, engines by their names, and the public rows that made it."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from benchmarks import typical
from objectives.device import Chip, Device
from objectives.engines import engine_of
from objectives.loss_law.law import Law
from objectives.precision import precision
from objectives.transfers import Conditions
from objectives.typical.efficiencies import (
    FAMILIES,
    Cell,
    Level,
    chip_kind,
    family_of,
    profile_of,
    shipped,
    typical_profile,
)
from plas_board.calibrating.group import calibrate, of_class
from plas_board.calibrating.measurements import Measurement
from plas_board.calibrating.terms import predict, terms
from plugins.board.tests.calibrating.conftest import shown


def chip(chip: str, **figures: object) -> Device:
    """A device of a class."""
    return Device.model_validate({"name": "x", "chip": chip, "fp16": 1, "bandwidth": 1, "memory": 1} | figures)


@pytest.mark.parametrize(
    ("name", "capped"), [("GeForce GTX 1050 Ti", True), ("gtx_1660", True), ("Tesla P40", True), ("RTX 3090", False)]
)
def test_dot_products_of_cards_without_tensor_cores_speed_up_no_decoding(name: str, capped: bool) -> None:
    """INT8 at 4 times FP16 is matrix units' on an RTX; on cards before them decoding is priced as at FP16's peak, and the device says so."""
    stated, plain = (chip("gpu", name=name, fp16=2.1e12, int8=i, bandwidth=1.12e11) for i in (8.4e12, 2.1e12))
    ours, theirs = (typical_profile(board, Conditions("int4")).decode_compute for board in (stated, plain))
    assert (ours == theirs) is capped
    assert any("no tensor cores" in line for line in stated.warnings()) is capped


def test_every_class_and_family_has_a_cell_and_a_profile_within_bounds() -> None:
    for name in get_args(Chip):
        for family in FAMILIES:
            cell = shipped().cell(chip(name, vendor="Nobody"), family, "an engine of which nothing is known")
            assert (cell.chip, cell.family, cell.engine) == (name, family, "")
            made = profile_of(shipped(), cell, chip(name))
            assert type(made).model_validate(made.model_dump()) == made


@pytest.mark.parametrize(
    ("name", "figures", "kind"),
    [
        ("GeForce GTX 1050 Ti", {"chip": "gpu", "int8": 2}, "NVIDIA"),
        ("Radeon RX 9070 XT", {"chip": "gpu", "int8": 2}, "AMD"),
        ("Arc Pro B70", {"chip": "gpu"}, "Intel"),
        ("x", {"chip": "gpu"}, "unknown"),
        ("L40S", {"chip": "server_gpu", "vendor": "NVIDIA", "bandwidth": 9e11}, "NVIDIA"),
        ("Tesla V100", {"chip": "server_gpu", "bandwidth": 2e12}, "NVIDIA HBM"),
        ("Apple M5 Max 40-core GPU", {"chip": "soc"}, "Apple"),
        ("m3_ultra", {"chip": "soc"}, "Apple Ultra"),
        ("A19 Pro", {"chip": "soc", "vendor": "Apple", "cooling": "phone"}, "phone"),
        ("Pixel 8a GPU", {"chip": "soc", "int8": 2}, "phone"),
        ("DGX Spark GB10", {"chip": "soc", "int8": 2}, "NVIDIA"),
        ("Core Ultra 9 288V", {"chip": "soc", "int8": 2}, "other"),
        ("AMD Ryzen AI 5 340 CPU", {"chip": "cpu"}, "x86"),
        ("Raspberry Pi 5", {"chip": "cpu"}, "Arm"),
        ("Google Tensor G3 CPU (Pixel 8a)", {"chip": "cpu"}, "phone"),
        ("x", {"chip": "npu", "vendor": "Hailo"}, "Hailo"),
        ("Snapdragon 8 Elite", {"chip": "npu", "cooling": "phone"}, "Qualcomm phone"),
        ("x", {"chip": "any", "int8": 2}, ""),
    ],
)
def test_kinds_are_makers_and_paths_to_memory(name: str, figures: dict[str, object], kind: str) -> None:
    assert chip_kind(chip(name=name, **figures)) == kind


def test_a_kind_that_was_not_seen_is_doubted_more() -> None:
    cards = [typical_profile(chip("gpu", vendor=name), Conditions("int4")) for name in ("Nobody", "NVIDIA")]
    for phase in ("prefill", "decode"):
        low, high = (np.log(np.quantile(card.held_out[phase], (0.1, 0.9))) for card in cards)
        assert low[1] - low[0] > high[1] - high[0]


def test_what_two_dies_show_stays_with_them() -> None:
    """No ceiling on arithmetic of decoding binds on Apple's GPUs; launches and attention of two dies are slower."""
    one, two = (typical_profile(chip("soc", name=name), Conditions("int4")) for name in ("Apple M5", "Apple M5 Ultra"))
    assert min(each.decode_compute * each.compute_efficiency for each in (one, two)) > 0.5
    assert two.overhead > 1.5 * one.overhead
    assert two.attention_bandwidth < one.attention_bandwidth == 1.0
    assert typical_profile(chip("npu", vendor="x"), Conditions("int4")).scan_compute < one.scan_compute < 1.0


def test_deep_decoding_of_a_processor_waits_for_its_cache(law: Law) -> None:
    """Llama-3.2-3B, from 1,024 to 65,536 tokens of context: 6.5 times as long on a Ryzen AI 5 340 (44.2 and 285.7 ms a token, FastFlowLM's page)."""
    board = chip("cpu", vendor="AMD", fp16=0.9e12, int8=3.6e12, bandwidth=89.6e9)
    (row,) = [m for m in shown(board, law, ["Llama-3.2-3B"], "q4_k_m") if m.phase == "decode"]
    deep = terms([replace(row, prompt=prompt, generated=64) for prompt in (1024, 65_536)], board, law)
    short, long = predict(deep, typical_profile(board, Conditions("q4_k_m")))
    assert long / short == pytest.approx(6.46, rel=0.15)


def test_prefills_of_npus_wait_for_weights() -> None:
    """Twice the operations a second bring nothing, twice the bandwidth half of the time; INT8 has twice the bytes of INT4."""
    base, faster, wider = (
        typical_profile(chip("npu", fp16=4e12 * a, int8=8e12 * a, bandwidth=4e10 * b), Conditions("int4"))
        for a, b in ((1, 1), (2, 1), (1, 2))
    )
    assert 2 * faster.compute_efficiency == pytest.approx(base.compute_efficiency)
    assert wider.compute_efficiency == pytest.approx(2 * base.compute_efficiency)
    assert base.compute_efficiency_int8 == pytest.approx(base.compute_efficiency / 4)


def test_an_npu_decodes_no_faster_by_memory_that_few_of_them_had() -> None:
    """Twice as wide as the widest that three had brings decoding nothing, prefills twice the speed; half of it is half of it; a GPU draws all."""
    widest = shipped().widest_npu
    profiles = {
        (name, times): (
            typical_profile(chip(name, vendor="Nobody", fp16=4e12, bandwidth=times * widest), Conditions("int4")),
            times,
        )
        for name in ("npu", "gpu")
        for times in (0.5, 1.0, 2.0)
    }
    drawn = {place: times * profile.bandwidth_efficiency for place, (profile, times) in profiles.items()}
    assert drawn["npu", 1.0] == pytest.approx(2 * drawn["npu", 0.5])
    assert drawn["npu", 2.0] == pytest.approx(drawn["npu", 1.0])
    assert drawn["gpu", 2.0] == pytest.approx(2 * drawn["gpu", 1.0])
    read = [profiles["npu", times][0].prefill_bandwidth_efficiency for times in (1.0, 2.0)]
    assert read[0] == pytest.approx(read[1])


def test_the_widest_memory_is_that_of_three_boards(law: Law) -> None:
    """One or two boards with wider ones say nothing of others, nor do GPUs; of fewer boards there is no bound; the forms have that of their rows."""
    board = typical.board_named("rk3588_npu")
    rows_of = [replace(m, device=board.name) for m in shown(board, law)]
    table = terms(rows_of, board, law)

    def group(name: str, bandwidth: float, kind: Chip = "npu") -> typical.Rows:
        wider = board.model_copy(update={"bandwidth": bandwidth})
        return typical.Rows(name, kind, "A", "w4", "E", rows_of, table, wider)

    widths = {"a": 1e10, "b": 5e10, "c": 2e10, "d": 4e10}
    found = [*(group(*each) for each in widths.items()), group("b", 5e10), group("e", 9e10, "gpu")]
    assert typical.widest_of(found) == 2e10
    assert typical.widest_of(found[:2]) == np.inf
    forms = typical.forms_of([g for g in found if g.device != "b"])
    assert forms["decode", False].seen[0].widest_npu == 1e10


@pytest.mark.parametrize(("kind", "free"), [("cpu", True), ("gpu", False)])
def test_three_models_of_a_processor_tell_launches_from_bytes(law: Law, kind: str, free: bool) -> None:
    """Of an engine that launches nothing a fourth model is nearer than by one scale; one model tells nothing, nor do other chips."""
    board = chip(kind, fp16=4e12, int8=8e12, bandwidth=4e11, memory=64e9)
    usual = typical_profile(board, Conditions("int4"))
    truth = usual.model_copy(update={"overhead": 0.0})
    rows = shown(board, law, truth=truth)
    profiles = [
        calibrate([m for m in rows if m.model in those], board, law, "").profile
        for those in ("Qwen3-0.6B", {m.model for m in rows})
    ]
    share = [
        profile.overhead / usual.overhead * profile.bandwidth_efficiency / usual.bandwidth_efficiency
        for profile in profiles
    ]
    assert share[0] == pytest.approx(1.0, rel=0.01)
    assert (share[1] < 0.5) == free
    (step,) = [m for m in shown(board, law, ("Qwen3-8B",), truth=truth) if m.phase == "decode"]
    if free:
        one, three = (predict(terms([step], board, law), profile)[0] for profile in profiles)
        assert abs(three / step.ms - 1.0) < abs(one / step.ms - 1.0)


def test_an_engine_that_one_board_was_seen_with_acts_on_no_other(law: Law) -> None:
    """Twice as slow with an engine of one board: others of the kind are priced as without, and no cell is of it; of two boards it is theirs."""
    board = typical.board_named("jetson_agx_orin_64gb")
    rows_of = [replace(m, device=board.name) for m in shown(board, law)]
    table = terms(rows_of, board, law)

    def group(device: str, engine: str) -> typical.Rows:
        slow = replace(table, ms=table.ms * (2.0 if engine == "slow" else 1.0))
        return typical.Rows(device, "soc", "NVIDIA", "w4", engine, rows_of, slow, board)

    usual = [group(name, "usual") for name in "abcde"]
    for boards, shared in (("a", False), ("ab", True)):
        found = [*usual, *(group(name, "slow") for name in boards)]
        known = typical.made(found, typical.cells_of(found), {})
        assert known.knows(board, "slow") == shared
        slow, any_engine = (known.cell(board, "w4", engine).decode.ratio for engine in ("slow", ""))
        assert (slow > 1.2 * any_engine) == shared


def test_rows_of_several_requests_say_what_their_engine_is_and_nothing_else(law: Law) -> None:
    """Half as slow with an engine that two boards served eight requests with: it has that, and one that is not stated, which is wider; others are as without."""
    board = typical.board_named("jetson_agx_orin_64gb")
    usual = [replace(m, device=board.name) for m in shown(board, law)]
    eight = [replace(m, batch=8) for m in usual if m.phase == "decode"]

    def group(device: str, engine: str, rows_of: list[Measurement], times: float) -> typical.Rows:
        table = terms(rows_of, board, law)
        return typical.Rows(device, "soc", "NVIDIA", "w4", engine, rows_of, replace(table, ms=table.ms * times), board)

    alone = [group(name, "usual", usual, 1.0) for name in "abcde"]
    found = [*alone, *(group(name, "server", eight, 0.5) for name in "fg")]
    places = [("soc", "NVIDIA", "w4", engine) for engine in ("", "usual", "server")]
    before, after = (typical.made(rows, places, {}).cells for rows in (alone, found))
    assert before[1] == after[1]
    assert after[0].decode.ratio == pytest.approx(after[2].decode.ratio, rel=1e-3)
    assert after[2].decode.ratio < 0.9 * before[2].decode.ratio
    assert after[0].decode.sd > max(before[0].decode.sd, after[2].decode.sd)
    for stated in (True, False):
        served = [row.label for row in typical.left_out(found, engines=stated) if row.served]
        assert served == ["soc NVIDIA served"] * 2 * len(eight)


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("llama-bench May-2024", "llama.cpp"),
        ("Ollama", "llama.cpp"),
        ("TensorRT-Edge-LLM 0.10.0", "TensorRT-Edge-LLM"),
        (" X ", "X"),
    ],
)
def test_an_engine_is_known_by_how_its_name_begins(name: str, engine: str) -> None:
    assert engine_of(name) == engine


@pytest.mark.parametrize(
    ("name", "family"), [("fp16", "fp16"), ("int4", "w4"), ("int8", "int8"), ("nvfp4", "fp4"), ("int4_kv8", "w4")]
)
def test_a_format_is_in_the_family_of_its_peak_or_its_bits(name: str, family: str) -> None:
    assert family_of(precision(name)) == family


def test_phases_take_as_many_times_as_long_as_the_cell_says(board: Device, law: Law) -> None:
    """Every time of the shape is longer by the ratio of its phase: efficiencies fall and overheads rise alike."""
    table = terms(shown(board, law), board, law)
    slower, usual = (
        Cell(chip="gpu", family="w4", engine="", prefill=Level(ratio=a, sd=0.2), decode=Level(ratio=b, sd=0.1))
        for a, b in ((1.5, 1.25), (1.0, 1.0))
    )
    ratio = np.divide(*(predict(table, profile_of(shipped(), cell, board)) for cell in (slower, usual)))
    assert ratio[table.requests > 0] == pytest.approx(1.5, rel=1e-9)
    assert ratio[table.requests == 0] == pytest.approx(1.25, rel=1e-2)  # attention's arithmetic is the prefill's


def test_a_log_of_decoding_alone_leaves_the_prefill_as_is_typical(board: Device, law: Law) -> None:
    """Of the class of the board, in the family of the rows; decoding is as measured."""
    gpu = board.model_copy(update={"chip": "gpu", "confidence": "verified"})
    rows = [row for row in shown(gpu, law) if row.phase == "decode"]
    done, usual = calibrate(rows, gpu, law, "test"), typical_profile(gpu, Conditions("int4"))
    assert done.profile.compute_efficiency == pytest.approx(usual.compute_efficiency, rel=1e-3)
    assert done.in_sample == pytest.approx(done.terms.ms, rel=0.15)


def test_activations_of_fp16_are_an_engine_of_their_own_in_prefills(law: Law) -> None:
    """Twice as slow in prefills: rows of integers keep their level, and no cell is of the others; decoding shares one."""
    board = typical.board_named("snapdragon_8_elite")
    rows_of = [replace(m, device="snapdragon_8_elite") for m in shown(board, law)]
    table = terms(rows_of, board, law)

    def group(device: str, floats: bool) -> typical.Rows:
        slowed = replace(table, ms=table.ms * np.where((table.requests > 0) & floats, 2.0, 1.0))
        return typical.Rows(device, "npu", "Qualcomm", "w4", "Genie", rows_of, slowed, board, floats=floats)

    rows = [group(name, floats) for name in "abcdefgh" for floats in (False, True)]
    prefill, decode = (typical.fitted(rows, phase) for phase in ("prefill", "decode"))
    integers, others = (prefill.at("npu", "Qualcomm", "w4", "Genie", floats=floats).ratio for floats in (False, True))
    assert others / integers == pytest.approx(2.0, rel=0.1)
    assert prefill.at("npu", "Qualcomm", "w4", "", floats=False).ratio == integers
    assert all(
        decode.at("npu", "Qualcomm", "w4", "Genie", floats=f).ratio == pytest.approx(1.0, abs=0.5)
        for f in (False, True)
    )


@pytest.mark.slow
def test_the_shipped_file_is_what_the_public_rows_say(external_data: Path) -> None:
    """Every cell is estimated again; of errors held out their quantiles stay within what the page says."""
    found = typical.public_groups(external_data)
    again, known = typical.made(found, typical.cells_of(found), {}), shipped()
    for cell, ours in zip(known.cells, again.cells, strict=True):
        assert (cell.chip, cell.kind, cell.family, cell.engine) == (ours.chip, ours.kind, ours.family, ours.engine)
        for phase in ("prefill", "decode"):
            assert cell.level(phase).ratio == pytest.approx(ours.level(phase).ratio, rel=0.01)
            assert cell.level(phase).sd == pytest.approx(ours.level(phase).sd, rel=0.01)
    judged = typical.left_out(found, engines=True)
    for phase, most in (("prefill", 0.34), ("decode", 0.13)):
        assert np.median([abs(np.exp(-row.off) - 1.0) for row in judged if row.phase == phase]) <= most
    again_by_kind = typical.by_kind({True: judged, False: typical.left_out(found, engines=False)})
    for engines, ours in ((True, known.with_engine), (False, known.residuals)):
        assert ours.keys() == again_by_kind[engines].keys()
        for kind, by_phase in ours.items():
            for phase, errors in by_phase.items():
                assert errors == pytest.approx(again_by_kind[engines][kind][phase], abs=0.02)


@pytest.mark.slow
def test_ranges_hold_in_every_kind(external_data: Path) -> None:
    """Of devices left out 75 to 88 % of rows are in ranges of 80 %, and 60 % in every kind."""
    found = typical.public_groups(external_data)
    for engines in (True, False):
        judged = typical.left_out(found, engines=engines)
        for phase in typical.PHASES:
            held = typical.coverage(judged, phase)
            assert min(share for _, share in held.values()) >= 0.60
            assert all(0.75 <= share <= 0.88 for share in held["all"])


def test_errors_held_out_are_those_of_the_kind_in_the_cells_standard_deviations() -> None:
    """With an engine and without; of a kind that was not seen they are those of all."""
    level, known = {phase: Level(ratio=1.0, sd=0.2) for phase in typical.PHASES}, shipped()
    for vendor, engine, theirs in (
        ("Qualcomm", "", known.residuals["npu Qualcomm"]),
        ("Qualcomm", "Genie", known.with_engine["npu Qualcomm"]),
        ("Nobody", "", known.residuals[""]),
    ):
        cell = Cell(chip="npu", family="w4", engine=engine, **level)
        for phase, errors in profile_of(known, cell, chip("npu", vendor=vendor)).held_out.items():
            assert np.log(errors) == pytest.approx(0.2 * np.array(theirs[phase]))


def test_ranges_after_few_rows_hold_what_their_own_models_showed(law: Law) -> None:
    """Three models of which one decodes half as fast as the others say: wider there than of three as they say, to that and no farther."""
    board = typical.board_named("jetson_agx_orin_64gb")
    alike = shown(board, law, truth=typical_profile(board, Conditions("int4")))
    odd = [replace(m, ms=m.ms * 2.0) if (m.model, m.phase) == ("Qwen3-4B", "decode") else m for m in alike]
    near, far = (of_class(rows, board, law, "", shipped()).profile.held_out for rows in (alike, odd))
    assert near["prefill"] == far["prefill"]
    assert max(near["decode"]) < max(far["decode"]) == pytest.approx(2.0, rel=0.1)
    assert len(near["decode"]) == len(far["decode"]) == len(shipped().few["decode"])


def test_npus_of_a_kind_decode_alike(law: Law) -> None:
    """Three boards of one maker twice as fast as three of another: a fourth of either is priced as its own."""
    board = typical.board_named("rk3588_npu")
    rows_of = [replace(m, device=board.name) for m in shown(board, law)]
    table = terms(rows_of, board, law)

    def group(device: str, kind: str, times: float) -> typical.Rows:
        return typical.Rows(device, "npu", kind, "w4", "E", rows_of, replace(table, ms=table.ms * times), board)

    decode = typical.fitted(
        [group(f"{kind}{i}", kind, times) for kind, times in (("A", 0.5), ("B", 1.0)) for i in range(3)], "decode"
    )
    fast, slow = (decode.at("npu", kind, "w4", "", floats=False).ratio for kind in "AB")
    assert slow / fast == pytest.approx(2.0, rel=0.1)


def test_gpus_of_phones_decode_by_the_rule_while_few_were_seen(law: Law) -> None:
    """Three boards twice as slow as the shape: by the rule; four: as they are."""
    board = typical.board_named("jetson_agx_orin_64gb")
    rows_of = [replace(m, device=board.name) for m in shown(board, law)]
    table = terms(rows_of, board, law)
    slow = replace(table, ms=table.ms * 2.0)
    boards = [typical.Rows(name, "soc", "phone", "w4", "E", rows_of, slow, board) for name in "abcd"]
    rule = typical.SHAPE.bandwidth_efficiency / typical.RULE
    few, enough = (
        typical.fitted(boards[:n], "decode").at("soc", "phone", "w4", "", floats=False).ratio for n in (3, 4)
    )
    assert few == pytest.approx(rule, rel=1e-3)
    assert enough > 1.2 * rule


def test_ranges_are_wider_of_kinds_of_few_boards() -> None:
    """Of equal devices a kind that was not seen has the widest range, one of many boards those of the rows; of one board it is no narrower than of none."""
    boards = [("soc 1", "a"), *(("soc 9", f"{i}") for i in range(9))]
    rows = [typical.Judged(name, kind, "", "decode", z, 1.0) for kind, name in boards for z in (-1.0, 1.0)]
    widths = [np.ptp(typical.errors_of(rows, kind)) for kind in ("", "soc 1", "soc 9")]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 1.1 * widths[2]
    near = [replace(row, off=0.1 * row.off) if row.kind == "soc 1" else row for row in rows]
    assert np.ptp(typical.errors_of(near, "soc 1")) >= np.ptp(typical.errors_of(near, ""))


def test_kinds_count_alike_for_boards_of_few() -> None:
    """Sixty near boards of one kind hide five kinds of one board that are far off from no range but its own; that of few boards is of that kind as it ships."""
    near = [("soc many", f"{i}", 0.1) for i in range(60)]
    rows = [
        typical.Judged(name, kind, "", "decode", z * off, 1.0)
        for kind, name, off in (*near, *((f"soc {i}", f"far {i}", 1.0) for i in range(5)))
        for z in (-1.0, 1.0)
    ]
    inner = slice(4, -4)
    unseen, few, many = (np.ptp(typical.errors_of(rows, kind)[inner]) for kind in ("", "soc 1", "soc many"))
    assert few >= unseen > 5 * many
    assert typical.errors_of(rows, "soc 1", beside=2) != typical.errors_of(rows, "soc 1")


def test_residuals_are_as_many_of_each_device() -> None:
    """Whatever the number of its rows; a range is made from the other devices, and "all" counts devices alike."""
    rows = [typical.Judged(f"{i}", "soc", "", "decode", 0.2 * z, 0.1) for i in range(10) for z in (-1.0, 0.0, 1.0)]
    rows += [typical.Judged("n", "npu", "", "decode", 0.5, 0.1)] * 7
    residuals = typical.residuals_of(rows)["decode"]
    assert len(residuals) == 11 * len(typical.KEPT)
    assert residuals[-len(typical.KEPT) :] == [5.0] * len(typical.KEPT)
    held = typical.coverage(rows, "decode")
    assert held["npu"] == (0.0, 0.0)
    assert 0.0 < held["soc"][1] < 1.0
    assert held["all"] == pytest.approx(tuple(10 * share / 11 for share in held["soc"]))
