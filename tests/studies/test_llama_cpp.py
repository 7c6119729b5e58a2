"""The measurement of llama.cpp: its list, its rules, and that its page follows from the table that ships."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from nas.files.tables import csv_text
from nas.study.catalogue import load_device, load_law
from objectives.device import Calibration
from plas_board.calibrate.command import LAW, measured_rows
from plas_board.calibrating.efficiencies import fit, freedom
from plas_board.calibrating.terms import predict, terms
from studies.llama_cpp.design import COLUMNS, LARGEST, MODELS, SMALLEST, architecture, drawn, half_bytes
from studies.llama_cpp.judging import Line, by_length, chosen, judged, rows_of
from studies.llama_cpp.measuring import BATCH, FORMATS, LENGTHS, Plan, command, gather, of_part, parts, write_list
from studies.llama_cpp.page import figures, verdicts, write_page

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "studies" / "llama_cpp"
TABLE, BOARD, PAGE = (FOLDER / name for name in ("llama-cpp.csv", "llama-cpp-board.yaml", "results.md"))

DEVICE = "name: B\nfp16: 200 GFLOP/s\nint8: 400 GOP/s\nbandwidth: 20 GB/s\nmemory: 16 GB\ncache: 32 MB\n"
TRUE = Calibration(
    compute_efficiency=0.6, bandwidth_efficiency=0.7, overhead=0.004, expert_bandwidth=0.9, routing_overlap=0.45
)


def test_the_list_is_what_the_design_draws() -> None:
    assert drawn() == MODELS.read_text(encoding="utf-8")


def test_the_list_is_what_was_asked_for() -> None:
    """At least 24 models of both kinds from 30 MB to 1 GB, no row that a format's blocks do not divide."""
    found = [architecture(row) for row in rows_of(MODELS)]
    sizes = np.array([half_bytes(each)[0] for each in found])
    assert len({tuple(row[name] for name in COLUMNS) for row in rows_of(MODELS)}) == len(found) >= 24
    assert (sizes > 0.9 * SMALLEST).all()
    assert (sizes <= LARGEST).all()
    assert all(each.width[0] % 256 == 0 and each.expert_size[0] % 256 == 0 for each in found)
    assert sum(each.n_experts[0] > 1 for each in found) >= 8


def test_every_call_of_measure_is_one_of_the_design(tmp_path: Path) -> None:
    plan = Plan(tmp_path, tmp_path, 25.0, ())
    found = list(parts(plan))
    assert {(p.format, p.length) for p in found if p.batch == 1} == {(kind, n) for kind in FORMATS for n in LENGTHS}
    assert {p.batch for p in found} == {1, BATCH}
    line = " ".join(command(plan, found[-1], tmp_path / "list.csv"))
    assert "--batch 4 --input-tokens 128 --output-tokens 16 --rounds 2 --repetitions 2" in line
    long = next(part for part in found if part.length == max(LENGTHS))
    assert "--repetitions 1" in " ".join(command(plan, long, tmp_path / "list.csv"))


def test_a_line_holds_only_if_all_its_figures_do() -> None:
    good = Line("dense", "prefill", 80, 0.10, 0.30, 0.9, (0.1, 0.05, 0.1))
    assert not good.faults()
    bad = Line("dense", "decode", 80, 0.081, 0.25, 0.89, (0.01, 0.01, float("nan")))
    assert bad.faults() == [
        "decode median 8.1 % above 8.0 %",
        "decode p90 25.0 % above 24.0 %",
        "decode median of size class 3 - above 8.0 %",
        "decode tau 0.89 below 0.9",
    ]
    assert verdicts([good, Line("with MoE", "decode", 9, 0.2, 0.3, 0.95, (0.5, 0.5, 0.5))]) == (
        "**dense: holds**. **with MoE: fails** (decode median 20.0 % above 12.0 %)."
    )


@pytest.fixture
def measured(tmp_path: Path) -> Plan:
    """A whole record whose times follow from known efficiencies, of six models and two lengths."""
    plan = Plan(tmp_path, tmp_path, 25.0, ("d-00", "d-05", "d-10", "m-00", "m-05", "m-08"))
    plan.board.write_text(DEVICE)
    for part in parts(plan):
        known = {
            "device": "",
            "engine": "llama-bench x",
            "precision": part.format,
            "batch": str(part.batch),
            "contended": "no",
            "state": "ok",
        }
        rows = [
            {
                **known,
                "model": row["id"],
                "prompt_len": str(part.length),
                "gen_len": gen,
                "metric": metric,
                "value": "1",
                **{c: row[c] for c in COLUMNS},
            }
            for row in of_part(plan, part)
            for metric, gen in (("prefill_ms", "0"), ("tpot_ms", "16"))
        ]
        lines = csv_text({name: [row[name] for row in rows] for name in rows[0]}).splitlines()
        found = measured_rows(lines, str(plan.board))[0]
        times = predict(terms(found, load_device(str(plan.board)), load_law(LAW)), TRUE)
        folder = tmp_path / "measured" / part.name
        folder.mkdir(parents=True)
        values = csv_text(
            {
                name: list(map(repr, times.tolist())) if name == "value" else [row[name] for row in rows]
                for name in rows[0]
            }
        )
        (folder / "measured.csv").write_text(values)
        (folder / "samples.jsonl").write_text(
            json.dumps({"machine": {"time": "2026-01-02T", "processor": "P", "cores": 2}}) + "\n"
        )
        write_list(tmp_path / "lists" / f"{part.name}.csv", of_part(plan, part))
    gather(plan)
    return plan


@pytest.mark.slow
def test_times_of_known_efficiencies_are_within_the_rules(measured: Plan) -> None:
    """Held out by model and by length the errors vanish, and every verdict of the page is that it holds where it can be judged."""
    for line in judged(measured.root / "rows.csv", str(measured.board), "q4_0", "with MoE"):
        assert line.rows == 12
        assert line.median < 0.02
        assert not line.faults()
    assert by_length(measured.root / "rows.csv", str(measured.board), "f16")["decode", 64].endswith("holds")
    write_page(measured)
    page = (measured.root / "page" / "results.md").read_text(encoding="utf-8")
    assert page.count("**with MoE: holds**") == 3
    assert "84 rows of 6 models, 0 failed, 0 contended" in page
    assert "### 4 sequences at once" in page


@pytest.mark.extended
@pytest.mark.skipif(not TABLE.exists(), reason="llama-cpp.csv comes with the measurement of record")
def test_the_page_follows_from_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for part in figures(TABLE, BOARD):
        assert part in page
    with TABLE.open(newline="", encoding="utf-8") as file:
        assert len({row["model"] for row in csv.DictReader(file)}) == len(rows_of(MODELS))


@pytest.mark.skipif(not TABLE.exists(), reason="llama-cpp.csv comes with the measurement of record")
def test_the_fit_finds_the_binding_side() -> None:
    """Without a model whose every head has keys of its own, bytes seem to bind from where the fit begins, and arithmetic fits better."""
    seen = chosen(TABLE, "q4_0", lambda row: row["batch"] == "1" and row["n_experts"] == "1" and row["model"] != "d-11")
    device = load_device(str(BOARD))
    table = terms(measured_rows(seen, str(BOARD))[0], device, load_law(LAW))
    found = fit(table, freedom(table, device, 15))
    assert 0.06 < (found.decode_attention_compute or 0.0) < 0.08
    assert found.attention_bandwidth > 0.5


@pytest.mark.skipif(not TABLE.exists(), reason="llama-cpp.csv comes with the measurement of record")
def test_decoding_from_longer_contexts_costs_by_query_head() -> None:
    """What the page says: microseconds a layer and query head from 256 to 2,048 tokens, in q4_0, however many KV heads there are."""
    steps = {
        (row["model"], row["prompt_len"]): row
        for row in rows_of(TABLE)
        if (row["precision"], row["batch"], row["metric"]) == ("q4_0", "1", "tpot_ms")
    }
    models = {model for model, _ in steps}
    of_heads, of_kv_heads = [], []
    for model in models:
        short, long = steps[model, "256"], steps[model, "2048"]
        more = 1e3 * (float(long["value"]) - float(short["value"])) / int(long["depth"])
        of_heads.append(more / int(long["n_heads"]))
        of_kv_heads.append(more / int(long["n_kv_heads"]))
    assert len(models) == 28
    assert 18 < min(of_heads) < max(of_heads) < 33
    assert max(of_kv_heads) > 20 * min(of_kv_heads)
