"""`METRIC@qNN` by name, what is said of it, and in runs: a metric of each design, by the factors of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.errors import UsageError
from nas.problem.quantiles import at_a_quantile, measured_at, named_in, ships
from nas.record.identity import difference


@pytest.mark.parametrize("name", ["memory_gb@q90", "total_ms@90", "total_ms@q100", "total_ms@", "perplexity@q90"])
def test_only_what_is_measured_has_a_quantile(name: str) -> None:
    with pytest.raises(UsageError, match="METRIC@qNN"):
        at_a_quantile(name)


def test_names() -> None:
    names = ["total_ms@q80", "tokens_per_second@q66.6", "loss@q90", "energy_j@q0", "total_ms"]
    assert [at_a_quantile(name) for name in names] == [True, True, True, True, False]
    assert [ships(name) for name in names] == [True, True, False, True, True]
    assert measured_at(names) == ["total_ms@q80", "energy_j@q0"]
    named = named_in(["total_ms@q80<=100", "tokens_per_second@q90>=20", "loss=3"])
    assert named == ["total_ms@q80", "tpot_ms@q90", "loss"]
    assert measured_at(named) == named[:2]


FLAGS = ("--preset", "device", "--precision", "int4", "--no-plots")
EXTRAPOLATED = "times are extrapolated: measured without experts: with them prefill took 0.72 to 1.6 times"
SAID = (
    "total_ms@q80 is 1.01 x prefill_ms + 1.01 x decode_ms of dense designs and 1.31 x prefill_ms + 1.07 x decode_ms of "
    "designs with experts: what of an unseen model is measured stays within with probability 80 %, from 4 models held out; "
    "times prefill 1.3, decode 1.06 of it for what was not measured of designs with experts"
)


@pytest.mark.slow
def test_in_a_run(inside: Any) -> None:
    """The budget is the design's own bound: said, kept, shown with its factors, and resumed."""
    small = ("--algo", "random", "--evaluations", "50", *FLAGS)
    answer = inside("run", *small, "--budget", "total_ms@q80=200", "--verbose", "--out", "run")
    assert SAID in answer.err, answer
    assert "total_ms@q80 <= 200" in answer.out
    assert "x decode_ms, from 4 models held out)" in " ".join(answer.out.split())
    assert answer.err.count(EXTRAPOLATED) == 1
    assert EXTRAPOLATED in inside("select", "run").err
    assert inside("run", "--resume", "run", "--evaluations", "60").code == 0
    told = json.loads(inside("explain", "run", "--select", "best", "--json").out)["budgets"][-1]
    assert (told["metric"], told["limit"], told["held_out"], told["of"]) == ("total_ms@q80", 200.0, 4, "models")
    assert set(told["factors"]) == {"prefill_ms", "decode_ms"}
    assert "x decode_ms, from 4 models held out" in inside("explain", "run", "--select", "best").out
    header = Path("run/frontier.csv").read_text().splitlines()[0].split(",")
    assert "total_ms@q80" in header


@pytest.mark.slow
def test_after_a_run(inside: Any) -> None:
    """A run without the metric is asked for it afterwards: its profile is recorded."""
    inside("run", "--algo", "random", "--evaluations", "50", *FLAGS, "--out", "run")
    chosen = json.loads(inside("select", "run", "--budget", "total_ms@q80=200", "--json").out)
    assert chosen
    assert all(row["total_ms@q80"] <= 200.0 for row in chosen)
    refused = inside("select", "run", "--budget", "total_ms@q90=200")
    assert refused.code == 2
    assert "expected at most q80" in refused.err


@pytest.mark.slow
def test_as_an_objective_and_of_a_rate(inside: Any) -> None:
    answer = inside(
        "run", "--algo", "random", "--evaluations", "50", *FLAGS, "--objectives", "loss,total_ms@q80", "--verbose"
    )
    assert "Minimise loss, total_ms@q80" in answer.out
    answer = inside(
        "run", "--algo", "random", "--evaluations", "50", *FLAGS, "--budget", "tokens_per_second@q80>=100", "--verbose"
    )
    assert "tpot_ms@q80 <= 10 (tokens_per_second@q80 >= 100)" in answer.out


def test_refusals(inside: Any) -> None:
    small = ("--algo", "random", "--evaluations", "50", *FLAGS)
    refused = inside("run", *small, "--budget", "total_ms@q90=200", "--out", "other")
    assert refused.code == 2
    assert "expected at most q80, which is what 4 models held out can claim, got q90" in refused.err
    refused = inside("run", "--algo", "random", "--preset", "paper", "--budget", "total_ms@q80=200")
    assert refused.code == 2
    assert "expected a calibrated profile with held-out errors of prefill, got datasheet peaks" in refused.err
    wrong = inside("run", "--budget", "memory_gb@q90=3")
    assert "--budget memory_gb@q90: expected METRIC@qNN" in wrong.err
    theory = inside("theory", *FLAGS[:4], "--law", "hw_codesign", "--budget", "total_ms@q80=200")
    assert theory.code == 2
    assert "expected a budget on predictions, got total_ms@q80" in theory.err


@pytest.mark.slow
def test_of_text_beside_several_vocabularies(inside: Any) -> None:
    """Times of a token are refused at a quantile as they are without; those of text have one."""
    small = ("--algo", "random", "--evaluations", "20", *FLAGS, "--vocabulary", "16k,32k")
    refused = inside("run", *small, "--budget", "tpot_ms@q80=200")
    assert refused.code == 2
    assert "use ms_per_kilobyte@q80" in refused.err
    assert (
        "ms_per_kilobyte@q80 <= 9000" in inside("run", *small, "--budget", "ms_per_kilobyte@q80=9000", "--verbose").out
    )


@pytest.mark.slow
def test_of_an_application_and_a_study_of_devices(inside: Any) -> None:
    """A limit of an application may be at a quantile, and each case of a study of devices has its own profile."""
    Path("study.yaml").write_text("applications: {reflex: {total_ms@q80: 200}}\n")
    small = ("--algo", "random", "--evaluations", "50", *FLAGS)
    assert "reflex: total_ms@q80 <= 200" in inside("run", *small, "--config", "study.yaml", "--verbose").out
    devices = ("--devices", "jetson_agx_orin_64gb,raspberry_pi_5", "--precisions", "int4", "--preset", "device")
    answer = inside("devices", *devices, "--budget", "total_ms@q80=20000", "--no-plots", "--out", "cases")
    assert answer.code == 0
    assert "from 4 models held out" in answer.err
    assert "from 50 devices held out" in answer.err


@pytest.mark.slow
def test_formats_are_named_where_they_differ(inside: Any) -> None:
    """A space of several formats says the factors of each, and a quantile that one of them cannot claim is refused by name."""
    small = ("--algo", "random", "--evaluations", "50", "--preset", "device", "--no-plots", "--precisions", "int4,fp16")
    said = inside("run", *small, "--budget", "total_ms@q80=500").err
    assert "fp16: total_ms@q80 is " in said
    assert "int4: total_ms@q80 is " in said
    refused = inside("run", *small, "--budget", "total_ms@q90=500")
    assert refused.code == 2
    assert "precision fp16: total_ms@q90: expected at most q80" in refused.err
    refused = inside("run", *small, "--set", "columns=[tokens_per_second@q90]")
    assert "precision fp16: tpot_ms@q90: expected at most q80" in refused.err


def test_a_run_of_an_earlier_version_goes_on_without_a_margin() -> None:
    """Which recorded no column beside its limit on a time; one of this version keeps it."""
    study = nas.load_study(preset="device", precision="int4", budgets={"total_ms": 121}, algo="random").assembled
    now = study.resolved()
    assert "total_ms@q80" in now["columns"]
    assert study.as_begun(now).problem.columns == study.problem.columns
    before = now | {"columns": []}
    assert difference(before, now) is not None
    assert difference(before, study.as_begun(before).resolved()) is None
