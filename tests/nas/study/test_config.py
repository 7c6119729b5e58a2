"""Configuration: which layer wins, what is refused, and how every fault is said."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from nas.errors import UsageError
from nas.files.yaml_source import dump, parse, read
from nas.search.assembly import Study, assemble
from nas.study.configuration import StudyConfig
from nas.study.layers import layered, parsed_settings
from nas.study.value_parsers import split_budgets
from objectives.plugins import documents, importable
from search_spaces.formats import FORMATS

Written = Callable[[str], str]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """A study file with this text; its path."""

    def write(text: str, name: str = "study.yaml") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


def study(config: str | None = None, settings: tuple[str, ...] = (), **flags: Any) -> Study:
    """The study of a command line."""
    return assemble(*layered(flags, list(settings), config))


def faults(config: str | None = None, settings: tuple[str, ...] = (), **flags: Any) -> list[str]:
    """The lines with which a command line is refused."""
    with pytest.raises(UsageError) as caught:
        study(config, settings, **flags)
    return str(caught.value).splitlines()


def budgets(made: Study) -> dict[str, float]:
    """Limits by metric."""
    return {budget.metric: budget.limit for budget in made.problem.budgets}


# Layers


def test_the_bare_study_is_the_papers() -> None:
    made = study()
    c, scenario = made.config, made.problem.scenario
    assert (c.algo, c.seed, made.parameters.model_dump()["population"]) == ("nsga2", 0, 100)
    assert (made.problem.space.name, made.problem.space.size) == ("paper", 13_120)
    assert (scenario.law.name, scenario.device.name) == ("hw_codesign", "NVIDIA Jetson AGX Orin 64 GB")
    assert (scenario.precision.name, scenario.latency, scenario.attention) == ("fp16", "operator", "unfused")
    assert (scenario.batch, scenario.input_tokens, scenario.output_tokens, made.problem.vocabulary) == (1, 1024, 16, 0)
    assert [o.name for o in made.problem.objectives] == ["loss", "total_ms"]
    assert budgets(made) == {"memory_gb": 64.0}


def test_flags_win_over_the_file_the_file_over_the_preset_the_preset_over_defaults(written: Written) -> None:
    file = written("preset: device\nattention: unfused\ninput_tokens: 512\nbatch: 4\n")
    assert study().problem.scenario.attention == "unfused"
    assert study(preset="device").problem.scenario.attention == "fused"
    from_file = study(file)
    assert (from_file.problem.scenario.attention, from_file.problem.scenario.causal) == ("unfused", True)
    assert (from_file.problem.vocabulary, from_file.config.input_tokens, from_file.config.batch) == (151_936, 512, 4)
    flagged = study(file, attention="fused", input_tokens=256, vocabulary=0)
    assert (
        flagged.config.attention,
        flagged.config.input_tokens,
        flagged.config.batch,
        flagged.problem.vocabulary,
    ) == ("fused", 256, 4, 0)


def test_a_preset_given_by_flag_fills_only_what_the_file_leaves_open(written: Written) -> None:
    file = written("preset: paper\nattention: unfused\n")
    made = study(file, preset="device")
    assert (made.config.attention, made.config.complete, budgets(made)) == (
        "unfused",
        True,
        {"resident_gb": pytest.approx(57.6), "extrapolation": 1.0},
    )


def test_set_reaches_every_key_and_wins_over_the_file(written: Written) -> None:
    file = written("seed: 3\nparams: {population: 40}\n")
    made = study(file, ("seed=7", "params.population=50", "default_budget.share=0.5", "name=mine"))
    assert (made.config.seed, made.parameters.model_dump()["population"], made.config.name) == (7, 50, "mine")
    assert budgets(made) == {"memory_gb": 32.0}


def test_a_mapping_in_a_file_can_be_changed_inside(written: Written, tiny: dict[str, Any]) -> None:
    file = written(dump({"space": tiny}))
    assert study(file).problem.space.size == 162
    assert study(file, ("space.axes.depth=[4]",)).problem.space.size == 54


def test_shipped_studies_are_found_by_name_and_hold() -> None:
    for name in documents("configs"):
        if not name.startswith(("compare", "devices")):
            assert study(name).config.name
    assert study("robot_int8").problem.scenario.precision.name == "int8"


# Budgets


def test_the_default_budget_is_the_devices_memory_and_others_add() -> None:
    assert budgets(study()) == {"memory_gb": 64.0}
    assert budgets(study(preset="device")) == {"resident_gb": pytest.approx(57.6), "extrapolation": 1.0}
    assert budgets(study(preset="device", outside="allow")) == {"resident_gb": pytest.approx(57.6)}
    assert budgets(study(preset="paper", budgets=["decode_ms=20", "total_ms<=100"])) == {
        "memory_gb": 64.0,
        "decode_ms": 20.0,
        "total_ms": 100.0,
    }
    assert budgets(study(preset="device", budgets=["memory_gb=8"])) == {
        "resident_gb": pytest.approx(57.6),
        "memory_gb": 8.0,
        "extrapolation": 1.0,
    }
    assert budgets(study(preset="paper", device="jetson-orin-nano-super-8gb")) == {"memory_gb": 8.0}
    assert budgets(study(device="jetson-orin-nano-super-8gb")) == {
        "resident_gb": pytest.approx(7.2),
        "extrapolation": 1.0,
    }
    assert budgets(study(budgets=["total_ms=100"], latency="closed_form")) == {"memory_gb": 64.0, "total_ms": 100.0}


@pytest.mark.parametrize("given", [["memory_gb=none"], ["memory_gb=none", "decode_ms=20"]])
def test_none_removes_the_default_budget(given: list[str], written: Written) -> None:
    assert "memory_gb" not in budgets(study(budgets=given))
    assert "memory_gb" not in budgets(study(written("budgets: {memory_gb: none}\n")))
    assert "memory_gb" not in budgets(study(written("default_budget: none\n")))


def test_a_flags_budget_replaces_the_files_and_leaves_the_others(written: Written) -> None:
    file = written("budgets: {decode_ms: 20, total_ms: 100}\n")
    assert budgets(study(file, preset="paper", budgets=["decode_ms=10"])) == {
        "memory_gb": 64.0,
        "decode_ms": 10.0,
        "total_ms": 100.0,
    }
    assert budgets(study(file, preset="paper", budgets=["decode_ms=none"])) == {"memory_gb": 64.0, "total_ms": 100.0}
    assert budgets(study(file, ("budgets.decode_ms=5",), preset="paper")) == {
        "memory_gb": 64.0,
        "decode_ms": 5.0,
        "total_ms": 100.0,
    }


@pytest.mark.parametrize(
    ("text", "metric", "limit"),
    [
        ("decode_ms=20", "decode_ms", 20.0),
        ("decode_ms<=20", "decode_ms", 20.0),
        ("decode_ms = 20 ms", "decode_ms", 20.0),
        ("decode_ms=0.02 s", "decode_ms", 20.0),
        ("decode_ms=2e1", "decode_ms", 20.0),
        ("memory_gb=512 MB", "memory_gb", 0.512),
        ("params_total=500M", "params_total", 5e8),
        ("params_active=1.5B", "params_active", 1.5e9),
        ("loss=3.2", "loss", 3.2),
    ],
)
def test_limits_are_read_with_the_units_people_write(text: str, metric: str, limit: float, written: Written) -> None:
    assert budgets(study(budgets=[text]))[metric] == pytest.approx(limit)
    written_limit = text.partition("=")[2].strip("= ")
    assert budgets(study(written(f"budgets: {{{metric}: {written_limit}}}\n")))[metric] == pytest.approx(limit)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "decode_ms",
        "decode_ms=",
        "=20",
        "decode_ms>=20",
        "decode_ms=-20",
        "decode_ms=0",
        "decode_ms=fast",
        "decode_ms=20 GB",
        "speed<=3",
        "time=3",
        "decode_ms=nan",
        "decode_ms=inf",
    ],
)
def test_other_budgets_are_refused_in_a_line(text: str) -> None:
    (said,) = faults(budgets=[text])
    assert said.startswith(("--budget: expected", f"--budget {text.partition('=')[0].strip('>')}: expected"))


def test_split_budgets_takes_both_signs() -> None:
    assert split_budgets(["a=1", "b<=2", " c = 3 "]) == {"a": "1", "b": "2", "c": "3"}
    assert split_budgets("a=1,000, b<=2,c>=3") == {"a": "1,000", "b": "2", "c": ">=3"}


# Files


def test_file_names_are_relative_to_the_study(
    tmp_path: Path, tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "studies" / "parts"
    folder.mkdir(parents=True)
    (folder / "space.yaml").write_text(dump(tiny))
    (folder / "law.yaml").write_text(
        documents("objectives.laws")["hw_codesign"].read_text().replace("name: hw_codesign", "name: mine")
    )
    (folder / "device.yml").write_text(
        "name: Board\nfp16: 1 TFLOP/s\nint8: 2 TOP/s\nbandwidth: 10 GB/s\nmemory: 4 GB\n"
    )
    file = folder.parent / "study.yaml"
    file.write_text("space: parts/space.yaml\nlaw: parts/law.yaml\ndevice: parts/device.yml\n")
    monkeypatch.chdir(tmp_path)
    made = study(str(file))
    assert (made.problem.space.name, made.problem.scenario.law.name, made.problem.scenario.device.name) == (
        "tiny",
        "mine",
        "Board",
    )
    assert study(space="studies/parts/space.yaml").problem.space.size == 162
    file.write_text(f"space: {folder / 'space.yaml'}\n")
    assert study("studies/study.yaml").problem.space.size == 162


def test_a_fault_in_a_part_names_the_parts_own_file_and_line(tmp_path: Path, written: Written) -> None:
    (tmp_path / "space.yaml").write_text(
        "name: x\naxes:\n  depth: [4]\n  width: [768, 769]\n  expert_ffn_ratio: [1]\n  n_kv_heads: [1]\n"
    )
    (tmp_path / "device.yaml").write_text(
        "name: Board\nfp16: 1 TFLOP/s\nint8: 2 TOP/s\nbandwith: 10 GB/s\nmemory: 4 GB\n"
    )
    said = faults(written("seed: -1\nspace: space.yaml\ndevice: device.yaml\n"))
    assert f"{tmp_path}/space.yaml:4: axes.width: expected multiples of head_dim 64, got 769; change one" in said
    assert any(
        line.startswith(f"{tmp_path}/device.yaml:4: bandwith: unknown key; did you mean bandwidth?") for line in said
    )
    assert any("bandwidth: expected a value, got nothing; add it" in line for line in said)
    assert any(line.startswith(f"{tmp_path}/study.yaml:1: seed: expected at least 0, got -1") for line in said)
    assert len(said) == 4


def test_a_resolved_study_reads_back_to_itself(studied: Callable[..., Study]) -> None:
    for raw in (
        {},
        {"preset": "device", "precision": "int4"},
        {"device": "jetson_agx_orin_64gb@30w", "budgets": {"decode_ms": "7 ms"}},
        {"calibration": {"compute_efficiency": 0.5, "overhead": "5 us"}},
    ):
        first = studied(**raw)
        content, _ = parse(dump(first.resolved()), "config.yaml")
        second = assemble(content, {})
        assert second.resolved() == first.resolved()
        assert second.problem.space.fingerprint == first.problem.space.fingerprint
        some = first.problem.space.genotypes(np.arange(50))
        assert {name: column.tolist() for name, column in second.problem.evaluate(some).metrics.items()} == {
            name: column.tolist() for name, column in first.problem.evaluate(some).metrics.items()
        }
        assert second.problem.budgets == first.problem.budgets
        assert second.problem.queries == first.problem.queries


# Faults

SIX = """\
name: mistaken
objectves: [loss]
vocabulary: many
batch: -4
device: jetson_agx_orin_65gb
space:
  name: mine
  axes:
    depth: [4, 8]
    width: [768]
    n_experts: [4]
    top_k: [8]
    expert_ffn_ratio: [1, 2]
    n_kv_heads: [1]
baselines: []
objectives: []
"""


def test_six_mistakes_are_six_lines_with_line_numbers_and_the_nearest_names(written: Written) -> None:
    path = written(SIX)
    said = faults(path)
    assert len(said) == 6, said
    for line, number, parts in zip(
        said,
        (2, 3, 4, 5, 12, 16),
        (
            ("objectves", "unknown key", "did you mean objectives?"),
            ("vocabulary", "expected an integer", "'many'"),
            ("batch", "expected at least 1", "-4"),
            ("device", "jetson_agx_orin_65gb", "did you mean jetson_agx_orin_64gb?"),
            ("space.axes.top_k", "expected fewer than n_experts 4", "[8]"),
            ("objectives", "expected at least 1 item", "[]"),
        ),
        strict=True,
    ):
        assert line.startswith(f"{path}:{number}: "), line
        assert all(part in line for part in parts), line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sed: 1", "1: sed: unknown key; did you mean seed?"),
        ("seed: 1.5", "1: seed: expected an integer, got 1.5"),
        ("seed: true", "1: seed: expected an integer, got True"),
        ("vocabulary: .inf", "1: vocabulary: expected an integer, got inf"),
        (f"vocabulary: '1{'0' * 309}'", "1: vocabulary: expected an integer, got '10"),
        ("seed: -1", "1: seed: expected at least 0, got -1"),
        ("causal: no", "1: causal: expected true or false, got 'no'"),
        ("objectives: 5", "1: objectives: expected a list, got 5"),
        ("objectives: [los]", "1: objectives.0: expected a metric"),
        ("objectives: [los]", "did you mean loss?"),
        ("objectives: [loss, loss]", "1: objectives.1: expected each objective once, got 'loss' twice"),
        ("objectives:\n- loss\n- 7", "3: objectives.1: expected text, got 7"),
        (
            "precision: fp7",
            f"1: precision: expected a format (the {len(FORMATS)} names of 'plas list formats'), got 'fp7'; choose one",
        ),
        ("preset: devise", "1: preset: expected paper or device, got 'devise'; did you mean device?"),
        ("algo: nsga3x", "did you mean nsga3?"),
        ("algo: nsga2\nparams: {populaton: 5}", "2: params.populaton: unknown key; did you mean population?"),
        ("params:\n  population: 2", "2: params.population: expected at least 4, got 2"),
        ("law: hw_codesing", "did you mean hw_codesign?"),
        ("space: papr", "did you mean paper?"),
        (
            "device: jetson_agx_orin_64gb@31w",
            "1: device: expected a power mode of NVIDIA Jetson AGX Orin 64 GB (50w, 30w, 15w), got '31w'",
        ),
        ("device: {name: x}", "1: device.int8: expected a peak, int8, fp16 or both, got nothing; write int8: 12 TOP/s"),
        ("baselines: [qwen]", "1: baselines.0: expected a published model"),
        (
            "baselines: [{depth: 4, width: 100, n_kv_heads: 1, expert_size: 64}]",
            "1: baselines.0: n_heads: expected a positive integer",
        ),
        (
            "applications:\n  robot: {decode_ms: 1, total_ms: 2}",
            "2: applications.robot: expected one metric and its limit",
        ),
        ("applications:\n  robot: {speed: 1}", "2: applications.robot.speed: expected a metric"),
        ("budgets:\n  decode_ms: fast", "2: budgets.decode_ms: expected a time like"),
        ("name: 'a/b'", "1: name: expected"),
        ("head_bytes: 0", "1: head_bytes: expected more than 0, got 0"),
        ("latency: closed_form\nattention: fused", "expected operator for attention, got closed_form"),
        (
            "law: {form: linear, coefficients: {}}",
            "hw_codesign_no_kv, hw_codesign_queries, parameters_power, got 'linear'; choose one",
        ),
        (
            "law:\n  form: hw_codesign\n  coefficients: {kappa_l: 1}",
            "3: law.coefficients.alpha_l: expected a number, got nothing; add it",
        ),
        (
            "space: {axes: {depth: [], width: [768], expert_ffn_ratio: [1], n_kv_heads: [1]}}",
            "1: space.axes.depth: expected at least one value, got an empty list",
        ),
    ],
)
def test_every_kind_of_fault_names_its_line_its_path_and_what_to_do(text: str, expected: str, written: Written) -> None:
    path = written(text)
    said = faults(path)
    assert any(expected in line for line in said), said
    assert len(said) == 1 or text.startswith(("device: {", "law:")), said
    assert all(line.startswith((f"{path}:", "latency")) for line in said)


def test_all_faults_come_at_once_applications_too(written: Written) -> None:
    said = faults(written("seed: -1\napplications:\n  robot: {decode_ms: 1, total_ms: 2}\nbaselines: [gpt]\n"))
    assert [line.partition(":")[2].partition(":")[0] for line in said] == ["1", "3", "4"]


def test_faults_come_in_the_order_of_lines(written: Written) -> None:
    lines = [
        f"{key}: -1"
        for key in ("vocabulary", "seed", "batch", "input_tokens", "output_tokens", "evaluations", "time_limit")
    ]
    said = faults(written("\n".join(["# comment"] * 5 + lines) + "\n"))
    assert [int(line.split(":")[1]) for line in said] == list(range(6, 13))


def test_faults_of_flags_name_the_flag() -> None:
    assert faults(batch=0)[0].startswith("--set batch: expected at least 1, got 0")
    assert faults(settings=("seed=x",))[0].startswith("--set seed: expected an integer, got 'x'")
    assert faults(params=["population=x"])[0].startswith("--param population: expected an integer, got 'x'")
    assert faults(input_tokens=-5)[0].startswith("--input-tokens: expected at least 1")


@pytest.mark.parametrize("setting", ["seed", "=5", "", "  =5"])
def test_settings_need_a_name_and_a_value(setting: str) -> None:
    with pytest.raises(UsageError, match="--set: expected name=value"):
        parsed_settings([setting])


@pytest.mark.parametrize(
    "setting",
    [
        "budgets=5",
        "budgets=[a]",
        "budgets=[decode_ms=1, x]",
        "params=3",
        "params=[1]",
        "seed=!!int x",
        "seed=[",
        "space=5",
        "space=[1]",
        "space.axes=5",
        "law=[]",
        "device=1",
        "applications=5",
        "applications=[1]",
        "applications.x=5",
        "baselines=5",
        "baselines=[5]",
        "baselines=[[]]",
        "objectives=[[loss]]",
        "objectives.0=loss",
        "algo=5",
        "algo=[x]",
        "default_budget=5",
        "calibration=[]",
        "calibration={x: 1}",
        "name=5",
        "preset=[]",
        "budgets={decode_ms: [1]}",
        "budgets={decode_ms: {a: 1}}",
        "space={axes: {depth: 4}}",
        "x.y.z=1",
        "device={name: x, fp16: fast}",
        "time_limit=abc",
        "baselines=[{depth: x}]",
        "objectives=loss:",
        "objectives=[a:b]",
        "device=nothing.yaml",
        "space=.",
        "law=..",
        "time_limit=.nan",
        "preset=null",
    ],
)
def test_no_setting_escapes_as_anything_but_a_usage_error(setting: str) -> None:
    assert all(line.startswith(("--set", "budget")) or "expected" in line for line in faults(settings=(setting,)))


@pytest.mark.parametrize("key", ["config", "space", "law", "device"])
def test_a_name_too_long_for_a_file_is_unknown(key: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        study("a" * 5000) if key == "config" else study(**{key: "a" * 5000})


def test_a_config_that_is_no_mapping_is_refused(written: Written) -> None:
    assert faults(written("- 1\n- 2\n"))[0].endswith(
        "study.yaml:1: expected keys and values, got a list; see 'plas init'"
    )
    assert "got an empty file" in faults(written("# nothing\n"))[0]


def test_an_unknown_config_lists_the_shipped_ones(tmp_path: Path) -> None:
    (said,) = faults("papper")
    assert "did you mean paper?" in said


def test_every_default_is_valid_and_every_shipped_document_is_yaml() -> None:
    try:
        StudyConfig.model_validate(StudyConfig().model_dump())
    except ValidationError as error:
        pytest.fail(str(error))
    for package in (
        "configs",
        "nas.study.presets",
        "objectives.laws",
        "objectives.devices",
        "search_spaces.spaces",
        "search_spaces.models",
    ):
        for path in documents(package).values():
            assert isinstance(read(path)[0], dict), path
    assert importable("nas.strategies")
