"""Requests of so many bytes of text: each vocabulary reads and writes its own number of tokens, and nothing else changes."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from nas.errors import UsageError
from nas.files.yaml_source import read
from nas.search.assembly import Study, under_preset
from nas.study.layers import layered
from nas.study.study_laws import recorded_lengths
from nas.study.value_parsers import written_bytes
from objectives.plugins import documents
from objectives.quantities import bytes_in_words
from search_spaces.arrays import IntArray

VOCABULARIES = (8192, 20_000, 151_936)
PROMPT, ANSWER = 10_000, 333
PRICED = ("total_ms", "prefill_ms", "decode_ms", "resident_gb", "memory_gb")
PLAIN: dict[str, Any] = {
    "baselines": [],
    "applications": {},
    "default_budget": "none",
    "preset": "device",
    "law": "hw_codesign",
}


def tokens(size: float, vocabulary: int) -> int:
    """Tokens of so many bytes, from the numbers of the shipped curve: straight lines in the logarithm of the vocabulary."""
    counted = read(documents("objectives.token_curves")["slimpajama"])[0]["sizes"]
    sizes, held = [row["vocabulary"] for row in counted], [row["bytes_per_token"] for row in counted]
    return math.ceil(size / float(np.interp(math.log(vocabulary), np.log(sizes), held)))


def every(study: Study) -> IntArray:
    return study.problem.space.genotypes(np.arange(study.problem.space.size))


def in_tokens_of(studied: Callable[..., Study], vocabulary: int, **further: Any) -> Study:
    """A study of one vocabulary that gives the tokens of the text by hand."""
    lengths = {"input_tokens": tokens(PROMPT, vocabulary), "output_tokens": tokens(ANSWER, vocabulary)}
    return studied(**PLAIN, vocabulary=vocabulary, **lengths, **further)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_of_one_vocabulary_it_is_the_study_of_those_tokens(studied: Callable[..., Study], vocabulary: int) -> None:
    study = studied(**PLAIN, vocabulary=vocabulary, input_text="10 kB", output_text=ANSWER)
    stated = in_tokens_of(studied, vocabulary)
    assert study.config.input_tokens == stated.problem.scenario.input_tokens
    found, expected = (each.problem.evaluate(every(each)).metrics for each in (study, stated))
    for name in found:
        np.testing.assert_array_equal(found[name], expected[name])


def test_each_of_several_vocabularies_reads_its_own_number_of_tokens(studied: Callable[..., Study]) -> None:
    study = studied(
        **PLAIN, vocabulary=list(VOCABULARIES), input_text=PROMPT, output_text=ANSWER, columns=["ms_per_kilobyte"]
    )
    designs, found = study.problem.space.architectures(every(study)), study.problem.evaluate(every(study)).metrics
    for vocabulary in VOCABULARIES:
        rows = np.flatnonzero(designs.vocabulary == vocabulary)
        stated = in_tokens_of(studied, vocabulary, columns=["ms_per_kilobyte"]).problem.assess(designs[rows])
        for name in (*PRICED, "ms_per_kilobyte"):
            np.testing.assert_array_equal(found[name][rows], stated[name])


def test_a_model_of_another_vocabulary_reads_its_own_in_a_study_of_one(studied: Callable[..., Study]) -> None:
    """So a published model, a step of explain and an architecture with a vocabulary are of the same text."""
    study = studied(**PLAIN, vocabulary=151_936, input_text=PROMPT, output_text=ANSWER)
    other = study.problem.space.architectures(every(study)).with_vocabulary(8192, tied=True)
    stated, found = in_tokens_of(studied, 8192).problem.assess(other), study.problem.assess(other)
    for name in PRICED:
        np.testing.assert_array_equal(found[name], stated[name])
    assert study.problem.with_vocabulary(8192).scenario.input_tokens == tokens(PROMPT, 8192)
    assert study.problem.pricing(other[:1]).output_tokens == tokens(ANSWER, 8192)


def test_one_length_in_text_and_the_other_in_tokens(studied: Callable[..., Study]) -> None:
    study = studied(**PLAIN, vocabulary=8192, input_text=PROMPT, output_tokens=7)
    other = study.problem.with_vocabulary(151_936).scenario
    assert (other.input_tokens, other.output_tokens) == (tokens(PROMPT, 151_936), 7)


def test_without_a_vocabulary_they_are_tokens_of_the_laws_tokenizer(studied: Callable[..., Study]) -> None:
    study = studied(input_text=PROMPT, baselines=[], applications={})
    assert study.problem.scenario.input_tokens == tokens(PROMPT, 50_257)
    headed = under_preset(study, "device").scenario
    assert headed.input_tokens == tokens(PROMPT, 151_936)


def test_a_recorded_study_says_its_text_and_is_the_same_when_read(studied: Callable[..., Study]) -> None:
    study = studied(**PLAIN, vocabulary=8192, input_text=PROMPT, output_tokens=7)
    recorded = study.resolved()
    assert (recorded["input_text"], recorded["input_tokens"]) == (PROMPT, "none")
    assert recorded_lengths(recorded) == {"input_tokens": tokens(PROMPT, 8192), "output_tokens": 7}
    again = studied(**recorded)
    assert again.resolved() == recorded
    assert again.problem.scenario == study.problem.scenario
    assert recorded_lengths(studied(input_tokens=5).resolved()) == {"input_tokens": 5, "output_tokens": 16}


@pytest.mark.parametrize(
    ("flags", "settings"), [({"input_text": 4, "input_tokens": 9}, []), ({"input_text": 4}, ["input_tokens=9"])]
)
def test_both_are_refused_by_name(flags: dict[str, Any], settings: list[str], studied: Callable[..., Study]) -> None:
    with pytest.raises(UsageError, match="expected input_tokens or input_text, got both; drop one"):
        studied(**layered(flags, settings, None)[0])


def test_a_flag_takes_the_place_of_the_other_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump({"input_tokens": 64, "output_text": "1 kB"}))
    raw, _ = layered({"input_text": "4kB", "output_tokens": 3}, [], str(file))
    assert {name: raw.get(name) for name in ("input_tokens", "input_text", "output_tokens", "output_text")} == {
        "input_tokens": None, "input_text": "4kB", "output_tokens": 3, "output_text": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("written", "size", "shown"),
    [
        ("10kB", 1e4, "10 kB"),
        ("1.5 MB", 1.5e6, "1.5 MB"),
        ("500", 500.0, "500 B"),
        (999, 999.0, "999 B"),
        ("12345 B", 12_345.0, "12.345 kB"),
    ],
)
def test_sizes_as_people_write_them(written: Any, size: float, shown: str) -> None:
    assert written_bytes(written) == size
    assert bytes_in_words(size) == shown


@pytest.mark.parametrize("written", ["10 GB/s", "kB", 0, -4, "4 tokens", True, [3]])
def test_other_sizes_are_refused_by_name(written: Any, studied: Callable[..., Study]) -> None:
    with pytest.raises(UsageError, match="input_text: expected a"):
        studied(input_text=written)


def test_a_vocabulary_that_the_curve_does_not_count_is_refused_by_name(studied: Callable[..., Study]) -> None:
    curve = {
        "name": "own",
        "source": {},
        "sizes": [{"vocabulary": 1000, "bytes_per_token": 3.0}, {"vocabulary": 2000, "bytes_per_token": 4.0}],
    }
    for further in ({"vocabulary": 32_000}, {}):
        with pytest.raises(UsageError, match="vocabulary: expected 1,000 to 2,000 as the curve own counts"):
            studied(token_curve=curve, input_text=100, **further)
    with pytest.raises(UsageError, match=r"token_curve: of the law's tokenizer: .* got 50,257"):
        studied(token_curve=curve, vocabulary=[1000, 2000])


@pytest.mark.slow
def test_commands_read_it_the_same_way(inside: Callable[..., Any]) -> None:
    """run, select, explain, resume, devices and export: one number of tokens in all of them."""
    study = [
        "--preset",
        "device",
        "--law",
        "hw_codesign",
        "--vocabulary",
        "32k",
        "--set",
        "input_text=10kB",
        "--set",
        "output_text=333",
    ]
    assert inside("run", *study, "--algo", "random", "--evaluations", "50", "--no-plots", "--out", "run").code == 0
    assert inside("run", "--resume", "run", "--evaluations", "60", "--no-plots").code == 0
    refused = inside("run", "--resume", "run", "--set", "input_text=9kB")
    assert refused.code == 2
    assert "input_text" in refused.err
    assert inside("select", "run", "--budget", "tokens_per_second>=1", "--out", "chosen.csv").code == 0
    explained = inside("explain", "run", "--select", "best")
    assert f"10 kB {tokens(PROMPT, 32_000):,} and 333 B {tokens(ANSWER, 32_000):,}" in explained.out
    assert inside("export", "run", "--select", "best", "--to", "vllm", "--out", "out").code == 0
    made = json.loads(Path("out/export.json").read_text())["workload"]
    assert made == {"batch": 1, "input_tokens": tokens(PROMPT, 32_000), "output_tokens": tokens(ANSWER, 32_000)}
    assert inside("report", "run").code == 0


def test_a_curve_is_looked_for_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("token_curve: curve.yaml\n")
    assert layered({}, [], str(tmp_path / "study.yaml"))[0]["token_curve"] == str(tmp_path / "curve.yaml")


@pytest.mark.slow
def test_devices_repeat_a_study_in_text_and_leave_out_models_that_the_curve_does_not_count(
    inside: Callable[..., Any], tmp_path: Path
) -> None:
    sizes = [{"vocabulary": 1000, "bytes_per_token": 3.0}, {"vocabulary": 200_000, "bytes_per_token": 5.0}]
    study = {"token_curve": {"name": "own", "source": {}, "sizes": sizes}, "input_text": "4 kB", "preset": "device"}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump({**study, "law": "hw_codesign", "devices": ["raspberry_pi_5"]}))
    answer = inside("devices", "--config", "study.yaml", "--no-plots", "--out", "first")
    assert answer.code == 0, answer
    (left,) = re.findall(r"token_curve does not count the vocabularies of (.*): left out", answer.err)
    assert {"Gemma-2-2B", "Gemma-3-1B"} < set(left.split(", "))
    assert "4 kB in, 16 tokens out" in answer.out
    assert inside("devices", "--config", "first/config.yaml", "--no-plots", "--out", "second").code == 0
    assert Path("first/picks.csv").read_text() == Path("second/picks.csv").read_text()
    assert inside("devices", "--config", "first/config.yaml", "--workloads", "100/10", "--out", "third").code == 0
