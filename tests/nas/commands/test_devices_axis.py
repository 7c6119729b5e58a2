"""Several devices as an axis, `--devices a,b`, as a user types it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nas.files import yaml_source
from tests.nas.conftest import TINY

Inside = Callable[..., Any]
SLOW, FAST = "jetson_orin_nano_super_8gb", "jetson_agx_orin_64gb"
FILES = ("config.yaml", "evaluations.csv", "frontier.csv", "picks.csv")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(yaml_source.dump({"preset": "paper", "space": TINY, "name": "tiny", "budgets": {"total_ms": 60}}))
    return path


def table(path: str) -> pd.DataFrame:
    return pd.read_csv(path)


@pytest.mark.parametrize("algo", ["exact", "nsga2"])
def test_one_device_in_the_axis_writes_the_bytes_of_the_plain_study(inside: Inside, study: Path, algo: str) -> None:
    common = ("--config", study, "--algo", algo, "--quiet", "--no-plots")
    assert inside("run", *common, "--device", SLOW, "--out", "plain").code == 0
    assert inside("run", *common, "--set", f"devices={SLOW}", "--out", "axis").code == 0
    for name in FILES:
        assert Path("plain", name).read_bytes() == Path("axis", name).read_bytes(), name


@pytest.mark.slow
def test_each_device_has_the_pick_of_a_study_of_its_own(inside: Inside, study: Path) -> None:
    common = ("--config", study, "--algo", "exact", "--quiet", "--no-plots", "--budget", "total_ms=300")
    assert inside("run", *common, "--set", f"devices={SLOW},{FAST}", "--out", "both").code == 0
    each = table("both/devices.csv").set_index("device")
    for name in (SLOW, FAST):
        assert inside("run", *common, "--device", name, "--out", name).code == 0
        pick = table(f"{name}/picks.csv").iloc[0]
        assert each.loc[name, ["depth", "width", "loss", "total_ms"]].tolist() == pytest.approx(
            pick[["depth", "width", "loss", "total_ms"]].tolist(), rel=1e-12
        )
    unplaced = inside("explain", "--model", "qwen2.5_0.5b", "--set", f"devices={SLOW},{FAST}")
    assert f"Priced on {SLOW}, the first" in unplaced.out
    alone = [table(f"{name}/frontier.csv").assign(device=name) for name in (SLOW, FAST)]
    best = {(row.depth, row.width, row.total_ms, row.device) for row in pd.concat(alone).itertuples()}
    assert all(
        (row.depth, row.width, row.total_ms, row.device) in best for row in table("both/frontier.csv").itertuples()
    )


@pytest.mark.parametrize(("objectives", "said"), [("loss,price", True), ("loss,price,total_ms", False)])
def test_a_design_of_the_answers_loss_at_a_lower_price_is_named(
    inside: Inside, study: Path, objectives: str, said: bool
) -> None:
    Path("prices.csv").write_text(f"device,price [USD]\n{SLOW},249\n{FAST},1999\n")
    priced = ("--set", f"devices={SLOW},{FAST}", "--set", "device_columns=prices.csv", "--objectives", objectives)
    run = inside(
        "run", "--config", study, "--algo", "exact", "--no-plots", "--verbose", *priced, "--budget", "total_ms=300"
    )
    shown = " ".join(run.out.split())
    assert (f"The same loss takes price 249 for 1999 USD with {SLOW}: " in shown) == said
    assert ("of equal losses the answer is that of least total_ms" in shown) == said


def test_a_search_over_devices_goes_on_to_the_same_bytes(inside: Inside, study: Path) -> None:
    common = ("--algo", "nsga2", "--quiet", "--no-plots")
    first = ("--config", study, "--set", f"devices={SLOW},{FAST}", "--evaluations", "60", *common)
    assert inside("run", *first, "--out", "one").code == 0
    assert inside("run", *first, "--evaluations", "30", "--out", "two").code == 0
    assert inside("run", "--resume", "two", "--evaluations", "60", "--quiet", "--no-plots").code == 0
    again = inside("run", "--config", "one", *common, "--out", "three")
    assert again.code == 0
    for name in ("evaluations.csv", "frontier.csv"):
        assert Path("one", name).read_bytes() == Path("three", name).read_bytes()
    assert set(table("two/evaluations.csv")["device"]) == {SLOW, FAST}


@pytest.mark.slow
def test_designs_are_explained_selected_and_shown_on_their_device(inside: Inside, study: Path) -> None:
    common = ("--config", study, "--algo", "exact", "--no-plots", "--preset", "device")
    run = inside("run", *common, "--set", f"devices={SLOW},{FAST}", "--out", "both")
    assert "on each device" in run.out
    assert f"{SLOW}: times" in run.err or f"{SLOW}:" in run.err
    explained = json.loads(inside("explain", "both", "--select", "best", "--json").out)
    best = table("both/picks.csv").iloc[0]
    assert str(best["device"]) in json.dumps(explained)
    assert inside("select", "both", "--select", "diverse:3", "--out", "chosen.csv").code == 0
    assert set(table("chosen.csv")["device"]) <= {SLOW, FAST}
    assert inside("report", "both").code == 0
    assert '"device":["' in Path("both/report.html").read_text().replace(" ", "")


def test_a_space_may_name_them(inside: Inside, study: Path) -> None:
    space = {**TINY, "axes": {**TINY["axes"], "device": [SLOW, FAST]}}
    Path("own.yaml").write_text(yaml_source.dump({"space": space, "name": "tiny"}))
    assert inside("run", "--config", "own.yaml", "--algo", "exact", "--quiet", "--no-plots", "--out", "own").code == 0
    assert (
        inside(
            "run",
            "--config",
            study,
            "--set",
            "budgets={}",
            "--set",
            f"devices={SLOW},{FAST}",
            "--algo",
            "exact",
            "--quiet",
            "--no-plots",
            "--out",
            "typed",
        ).code
        == 0
    )
    assert Path("own/frontier.csv").read_bytes() == Path("typed/frontier.csv").read_bytes()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--set", f"devices={SLOW},{SLOW}"), "expected each device once"),
        (("--set", f"devices={SLOW},{FAST}", "--device", FAST), "expected device or devices"),
        (("--set", f"devices={SLOW},l40x"), "did you mean l40s?"),
        (
            ("--set", f"devices={SLOW},{FAST}", "--set", "calibration.compute_efficiency=0.5"),
            "got a profile, which is of one",
        ),
        (
            ("--set", f"devices=raspberry_pi_5,{FAST}", "--precision", "nvfp4_down8"),
            "raspberry_pi_5: precision: nvfp4_down8",
        ),
    ],
)
def test_what_cannot_be_is_named(inside: Inside, study: Path, given: tuple[str, ...], said: str) -> None:
    answer = inside("run", "--config", study, *given)
    assert answer.code == 2
    assert said in answer.err


def test_a_cheaper_design_breaks_no_budget_of_the_selection_and_is_on_no_dearer_device(
    inside: Inside, study: Path
) -> None:
    Path("prices.csv").write_text(f"device,price\n{SLOW},200\n{FAST},2000\n")
    run = (
        "--config",
        study,
        "--set",
        f"devices={SLOW},{FAST}",
        "--set",
        "device_columns=prices.csv",
        "--law",
        "evidence",
    )
    asked = ("--objectives", "loss,total_ms,price", "--algo", "exact", "--no-plots", "--quiet", "--out", "priced")
    assert inside("run", *run, "--budget", "total_ms=none", *asked).code == 0
    chosen = inside("select", "priced", "--select", "best", "--budget", "price=300")
    assert chosen.code == 0
    text = " ".join((chosen.out + chosen.err).split())
    assert SLOW in text
    assert f"device {SLOW} -> {FAST}" not in text


@pytest.mark.slow
def test_workers_know_the_names_of_devices(inside: Inside, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("boards.py").write_text(
        "import numpy as np\n\ndef letters(a):\n    return np.array([float(len(n)) for n in a.columns(['device'])['device']])\n"
    )
    monkeypatch.syspath_prepend(str(Path.cwd()))
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()), prepend=":")
    run = ("run", "--config", study, "--set", f"devices={SLOW},{FAST}", "--objectives", "loss,boards:letters")
    common = ("--algo", "random", "--evaluations", "12", "--workers", "2", "--quiet", "--no-plots", "--out", "own")
    assert inside(*run, *common, "--budget", "total_ms=none").code == 0
    found = table("own/evaluations.csv")
    assert (found["state"] == "ok").all()
    assert found["boards:letters"].tolist() == found["device"].str.len().tolist()
