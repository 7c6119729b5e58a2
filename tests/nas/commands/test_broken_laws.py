"""Laws of one's own with something wrong in the file, through every command that takes a law: one line, exit code 2."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Inside = Callable[..., Any]
LAW = """\
name: own
form:
  terms:
    parameters: {scale: a, powers: {parameters: -alpha}}
    level: {scale: e}
coefficients: {a: 480, alpha: 0.3, e: 1.8}
prices: {n_experts: [1, 8]}
"""
SATURATED = """\
name: own
form:
  bent: {kinds: {of: n_experts, by: saturation, coefficients: [start, most]}}
  terms: {level: {scale: e, powers: {kinds: -alpha}}}
coefficients: {e: 2, alpha: 0.1, start: START, most: 16}
"""
BROKEN = {
    LAW.replace(
        "parameters: -alpha", "paramters: -alpha"
    ): "own.yaml:4: form.terms.parameters: expected quantities among ",
    LAW.replace("{scale: e}", "{scale: e"): "own.yaml:6: expected YAML, got ",
    LAW.replace("alpha: 0.3, ", ""): "own.yaml:6: coefficients.alpha: expected a number, got nothing; add it",
    LAW.replace("480", ".nan"): "own.yaml:6: coefficients.a: expected a finite number, got nan; correct it",
    LAW.replace("0.3", "-4000"): "expected a formula that gives losses, got none above 0 from own for ",
    LAW.replace("480", "0").replace("1.8", "0"): "expected a formula that gives losses, got none above 0 from own for ",
    LAW.replace(
        "[1, 8]", "[8, 1]"
    ): "own.yaml:7: prices.n_experts: expected the least and the most of a quantity, got 8 and 1;",
    LAW.replace("[1, 8]", "[.nan, 1]"): "own.yaml:7: prices.n_experts: expected the least and the most of a quantity",
    SATURATED.replace(
        "START", "0"
    ): "own.yaml:5: coefficients.start: expected a positive number that bends a quantity, got 0;",
    SATURATED.replace("START", "16"): "own.yaml:5: coefficients.start: expected less than most, 16, got 16; correct it",
    "name: own\nform: [depth]\ncoefficients: {a: 1}\n": "own.yaml:2: form: expected text, got ['depth']; correct it",
    "name: own\nform: nowhere\ncoefficients: {a: 1}\n": "own.yaml:2: form: expected one of active_power, ",
}
COMMANDS = (
    ("run", "--algo", "random", "--evaluations", 5, "--out", "new", "--law", "own.yaml"),
    ("run", "--algo", "random", "--evaluations", 5, "--out", "new", "--set", "laws=own.yaml"),
    ("explain", "--model", "qwen2.5_0.5b", "--law", "own.yaml"),
    ("select", "run", "--laws", "own.yaml"),
    ("theory", "--law", "own.yaml"),
    ("devices", "--devices", "jetson_agx_thor", "--out", "new", "--law", "own.yaml"),
    ("compare", "--algos", "random", "--evaluations", 5, "--out", "new", "--law", "own.yaml"),
    ("fit", "runs.csv", "--out", "new.yaml", "--law", "own.yaml"),
)
QUICK = ("run",)


@pytest.mark.parametrize("content", BROKEN)
@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=() if line[0] in QUICK else pytest.mark.slow) for line in COMMANDS],
    ids=lambda line: " ".join([line[0], line[-2]]),
)
def test_a_broken_law_is_one_line(
    line: tuple[str, ...], content: str, inside: Inside, copied: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(content)
    designs = [(depth, width) for depth in (4, 8, 16) for width in (256, 512, 1024, 2048)]
    rows = [f"{depth},{width},4,{4 * width},1,1,{2 + 90 / (depth * width) ** 0.5}" for depth, width in designs]
    head = "depth,width,n_kv_heads,expert_size,n_experts,top_k,loss"
    (tmp_path / "runs.csv").write_text("\n".join([head, *rows, ""]))
    answer = inside(*line)
    assert answer.code == 2, answer
    (said,) = answer.err.splitlines()
    assert BROKEN[content] in said
    assert not list(tmp_path.glob("new*"))
    assert copied.is_dir()
