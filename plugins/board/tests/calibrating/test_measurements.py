"""Reading measured CSV: metrics, lengths, rows left out with their reason."""

import pytest

from objectives.device import Device
from objectives.loss_law.law import Law
from objectives.measured_formats import FORMATS, format_of
from plas_board.calibrate.command import resolve
from plas_board.calibrating.measurements import LeftOut, read, reasons
from plas_board.calibrating.terms import terms

HEADER = "device,model,precision,batch,prompt_len,gen_len,metric,value,quality"


@pytest.mark.parametrize(
    ("cells", "phase", "ms"),
    [
        ("8,512,0,ttft_ms,80", "prefill", 80.0),
        ("8,500,0,prefill_tok_s,1000", "prefill", 4000.0),
        ("4,512,16,decode_tok_s,100", "decode", 40.0),
        ("4,512,16,tpot_ms,12.5", "decode", 12.5),
    ],
)
def test_metrics(cells: str, phase: str, ms: float) -> None:
    """Rates are aggregate over the batch; times stand for themselves."""
    rows, left = read([HEADER, f"board,Qwen3-0.6B,INT4-AWQ,{cells},A"], "", resolve)
    assert not left
    assert (rows[0].phase, rows[0].ms) == (phase, pytest.approx(ms))


def test_what_is_not_said_of_a_row_is_the_usual() -> None:
    """One sequence, fp16, a decode figure over 128 tokens, the device that is calibrated."""
    rows, left = read([HEADER, ",Qwen3-0.6B,,,512,,tpot_ms,12,A"], "board", resolve)
    assert not left
    assert (rows[0].batch, rows[0].generated, rows[0].device, rows[0].format.precision.name) == (
        1,
        128,
        "board",
        "fp16",
    )


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("Qwen3-0.6B,fp16,1,512,0,ttft_ms,80,C", "quality C"),
        ("Qwen3-0.6B,fp16,1,,0,ttft_ms,80,A", "prompt_len: expected a number of tokens"),
        ("Qwen3-0.6B,fp16,1,0,0,ttft_ms,80,A", "prompt_len: expected at least 1"),
        ("Qwen3-0.6B,fp16,1,many,0,ttft_ms,80,A", "prompt_len: expected a whole number"),
        ("Qwen3-0.6B,fp16,1,-4,0,ttft_ms,80,A", "prompt_len: expected at least 0"),
        ("Qwen3-0.6B,fp16,0,512,0,ttft_ms,80,A", "batch: expected a whole number of at least 1, got 0"),
        ("Qwen3-0.6B,fp16,1.5,512,0,ttft_ms,80,A", "batch: expected a whole number of at least 1, got 1.5"),
        ("Qwen3-0.6B,fp16,1,512,0,ttft_ms,nan,A", "value: expected a positive number"),
        ("Qwen3-0.6B,fp16,1,512,0,ttft_ms,,A", "value: expected a positive number"),
        ("Qwen3-0.6B,fp16,1,512,0,speed,80,A", "metric: expected"),
        ("Qwen3-0.6B,fp7,1,512,0,ttft_ms,80,A", "expected a weight format"),
        ("Nobody-7B,fp16,1,512,0,ttft_ms,80,A", "model: expected"),
    ],
)
def test_left_out(cells: str, reason: str) -> None:
    """A row that cannot be used is named with its line and the reason; the others are read."""
    rows, left = read([HEADER, f"board,{cells}", "board,Qwen3-0.6B,fp16,1,512,0,ttft_ms,80,A"], "", resolve)
    assert [row.line for row in left] == [2]
    assert left[0].reason.startswith(reason)
    assert [row.line for row in rows] == [3]


def test_architecture_columns() -> None:
    """An architecture of one's own is given by its columns."""
    header = "model,depth,width,n_heads,n_kv_heads,head_dim,n_experts,top_k,expert_size,prompt_len,metric,value"
    rows, left = read([header, "mine,4,256,4,2,64,4,2,512,64,prefill_ms,3"], "board", resolve)
    assert not left
    assert (rows[0].model, rows[0].device) == ("mine", "board")
    assert rows[0].architecture.top_k[0] == 2


def test_low_precision_peak() -> None:
    """A format with a peak of its own needs a device that states it."""
    plain = Device(name="board", fp16=1, int8=2, bandwidth=1, memory=1)
    peak = format_of("NVFP4").precision.linear_peak
    assert plain.model_copy(update={"other_peaks": {"fp4": 9e12}}).peak(peak) == 9e12
    assert plain.peak(format_of("INT8").precision.linear_peak) == 2e12
    with pytest.raises(ValueError, match="fp4 peak"):
        plain.peak(peak)


def test_families() -> None:
    """Formats that compute alike calibrate together."""
    assert {FORMATS[name].family for name in ("int4_awq", "int4_gptq", "w4a16")} == {"int4"}


def test_a_file_is_priced_in_its_own_bits(board: Device, law: Law) -> None:
    """9.7 bits of every weight of a Llama-3.1-8B's layers in place of its format's, Q4_K with half of v and down in Q6_K; its head stays."""
    lines = [HEADER + ",weight_bits", *(f",Llama-3.1-8B,q4_k_m,1,1,1,tpot_ms,12,A,{bits}" for bits in ("", "9.7"))]
    rows, left = read(lines, "board", resolve)
    assert not left
    usual, wider = terms(rows, board, law).memory.sum(axis=1) * board.bandwidth
    q4_k, mixed = 144 / 256, (144 + 210) / 512
    plain, half = 2 * 4096 * 4096 + 4096 * 1024 + 2 * 4096 * 14_336, 4096 * 1024 + 4096 * 14_336
    expected = 32 * (plain * (9.7 / 8 - q4_k) + half * (9.7 / 8 - mixed))
    assert wider - usual == pytest.approx(expected, rel=1e-6)


def test_a_prompt_after_a_context_attends_to_it(board: Device, law: Law) -> None:
    """512 tokens after 4,096: each attends to the context and half of the prompt, so that the pairs are those counted one by one."""
    lines = [HEADER + ",attended_len", ",Llama-3.1-8B,fp16,1,512,0,prefill_ms,12,A,4352"]
    (row,), left = read(lines, "board", resolve)
    assert not left
    found = terms([row], board, law)
    pairs = sum(4096 + i for i in range(1, 513))
    flops = 32 * pairs * (4 * 4096 + 5 * 32)
    assert float((found.compute * found.attention).sum()) * board.fp16 == pytest.approx(flops, rel=2e-4)


def test_designs_of_one_name_or_none_are_models_of_their_own() -> None:
    """Held-out errors leave out a model: rows without names are no one model, nor are two files' design-1."""
    header = "model,depth,width,n_kv_heads,expert_size,prompt_len,metric,value"
    shapes = ("4,256,2,512", "8,256,2,512", "4,256,2,512")
    for name, expected in (
        ("", ["design (1)", "design (2)", "design (1)"]),
        ("mine", ["mine (1)", "mine (2)", "mine (1)"]),
    ):
        rows, left = read([header, *(f"{name},{shape},64,prefill_ms,3" for shape in shapes)], "board", resolve)
        assert not left
        assert [row.model for row in rows] == expected
    rows, _ = read([header, *(f"{name},{shapes[0]},64,prefill_ms,3" for name in ("a", "b", "a"))], "board", resolve)
    assert [row.model for row in rows] == ["a", "b", "a"]


def test_a_row_with_a_decimal_comma_is_not_read_as_its_whole_part() -> None:
    rows, left = read([HEADER[:-8], 'board,Qwen3-0.6B,fp16,1,512,16,tpot_ms,"12,5"'], "", resolve)
    assert not rows
    said = 'value: expected a positive number, got \'12,5\'; df["value"] = df["value"].str.replace'
    assert left[0].reason.startswith(said)


def test_many_reasons_are_counted() -> None:
    left = [LeftOut(n, "board", f"value: expected a positive number, got '{n} ms'; correct it") for n in range(30)]
    said = reasons(left)
    assert said.count("value: ") == 8
    assert said.endswith("; 22 rows for further reasons")
