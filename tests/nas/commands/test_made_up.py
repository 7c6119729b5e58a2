"""A scenario key, metric, gene and format that nobody has thought of, as whoever adds one writes it, through every command.

Each is honoured, so that a run, its explanation, its export and its resumption hold the same numbers, or refused by name.
No command may end in a traceback.
"""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nas.files import yaml_source
from nas.strategies.conformance.laws import AXES
from tests.nas.commands.changed_tree import ChangedTree, Said

pytestmark = pytest.mark.slow

Edit = tuple[str, str, str]
DEVICE = "jetson_agx_thor"
PRICED = ("--device", DEVICE, "--preset", "device", "--law", "hw_codesign")
QUIET = ("--no-plots", "--quiet")
VOCABULARIES = [8192, 32_000, 151_936]

FORMAT: list[Edit] = [
    ("search_spaces/formats.py", '"mlx_8bit"]', '"mlx_8bit", "int6"]'),
    (
        "objectives/weight_formats/formats.yaml",
        "formats:\n  fp16:",
        "  INT6: {weights: 4, bytes: 3}\nformats:\n  int6: {weights: INT6, source: made up}\n  fp16:",
    ),
]
KEY: list[Edit] = [
    (
        "nas/study/configuration.py",
        "    batch: Annotated[int,",
        '    made_up: Annotated[float, Field(ge=1.0), Key(DEVICE, "--made-up", kind=float)] = 1.0\n'
        '    """How much slower."""\n'
        "    batch: Annotated[int,",
    ),
    (
        "nas/study/scenarios.py",
        "        head_bytes=config",
        "        made_up=config.made_up,\n        head_bytes=config",
    ),
    (
        "objectives/scenario.py",
        "    from_cache: bool = False\n",
        "    from_cache: bool = False\n    made_up: float = 1.0\n",
    ),
    ("objectives/scenario.py", "return self.slower / (efficiency", "return self.made_up / (efficiency"),
    ("objectives/scenario.py", "return self.slower / ((self.calibration", "return self.made_up / ((self.calibration"),
]
METRIC_HEAD = '"""Made up, (n,)."""\nfrom objectives import memory\nUNIT = "GB"\nLOG_SCALE = True\n\n'
METRIC: list[Edit] = [
    (
        "objectives/metrics/made_up.py",
        "",
        f"{METRIC_HEAD}def evaluate(assessment):\n    return assessment.architectures.depth / assessment['resident_gb']\n",
    ),
    (
        "objectives/metrics/made_of_parts.py",
        "",
        f"{METRIC_HEAD}def evaluate(assessment):\n"
        "    return 2.0 * memory.weights_gb(assessment.dimensions, assessment.parameters, assessment.scenario)\n\n\n"
        "def parts(shares):\n    return memory.weights_share(shares).times(2.0)\n",
    ),
]


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[Sequence[Edit], Sequence[int]], ChangedTree]:
    """The code with edits, and a study of the tiny space, its vocabulary an axis where values of it are given."""

    def made(edits: Sequence[Edit], vocabularies: Sequence[int] = ()) -> ChangedTree:
        found = ChangedTree.made(tmp_path, edits)
        axes = {**AXES, **({"vocabulary": list(vocabularies)} if vocabularies else {})}
        study = yaml_source.dump({"space": {"name": "tiny", "axes": axes}})
        (found.folder / "study.yaml").write_text(study, encoding="utf-8")
        return found

    return made


def through(tree: ChangedTree, *study: object) -> dict[str, Said]:
    """What the commands say of a study with keys: a run, what it is handed to, and other commands with the same keys."""
    asked = ("--config", "study.yaml", *study)
    commands: dict[str, Sequence[object]] = {
        "run": ("run", "--algo", "random", "--evaluations", 20, *asked, *QUIET, "--out", "run"),
        "resume": ("run", "--resume", "run", "--evaluations", 30, *QUIET),
        "exact": ("run", "--algo", "exact", *asked, *QUIET, "--out", "exact"),
        "explain": ("explain", "run", "--index", 1, "--json"),
        "export": ("export", "run", "--select", "best", "--out", "out"),
        "verify": ("export", "--verify", "out"),
        "report": ("report", "run"),
        "select": ("select", "run", "--json"),
        "theory": ("theory", *asked, "--budget", "total_ms=400"),
        "devices": (
            *("devices", "--config", "study.yaml", "--devices", DEVICE),
            *study[2:],
            "--no-plots",
            "--out",
            "d",
        ),
        "compare": ("compare", "--algos", "random,nsga2", "--seeds", 2, "--evaluations", 40, *asked, "--out", "c"),
    }
    said = dict(zip(commands, tree(*commands.values()), strict=True))
    assert not {name: each.err for name, each in said.items() if each.code == -1}
    return said


def rows(tree: ChangedTree, name: str = "run/evaluations.csv") -> list[dict[str, str]]:
    """A table of the user's folder."""
    with (tree.folder / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def honoured(said: dict[str, Said], *refused: str) -> None:
    """Every command but those did what was asked."""
    assert {name: each.err for name, each in said.items() if each.code and name not in refused} == {}
    assert all(said[name].code == 2 for name in refused), said


def explained_alike(tree: ChangedTree, said: dict[str, Said], *metrics: str) -> None:
    """An explanation has the numbers of the run's row."""
    found = json.loads(said["explain"].out)["metrics"]
    for name in metrics:
        assert found[name] == pytest.approx(float(rows(tree)[1][name]), rel=1e-9)


Tree = Callable[..., ChangedTree]


def test_a_format(tree: Tree) -> None:
    """Priced with its own bytes and without a profile of another; named where predictions are said."""
    made = tree(FORMAT)
    said = through(made, *PRICED, "--set", "precision=int6")
    honoured(said)
    explained_alike(made, said, "total_ms", "memory_gb", "loss")
    assert len(rows(made)) == 30
    assert json.loads((made.folder / "out/export.json").read_text())["predictions"]["precision"] == "int6"
    assert "int6" in (made.folder / "run/report.html").read_text(encoding="utf-8")
    weights = {row["memory_gb"] for row in rows(made, "exact/frontier.csv")}
    (half,) = made(("run", "--algo", "exact", "--config", "study.yaml", *PRICED, *QUIET, "--out", "half"))
    assert half.code == 0
    assert len(weights & {row["memory_gb"] for row in rows(made, "half/frontier.csv")}) == 0


def test_a_key_of_the_scenario(tree: Tree) -> None:
    """What it makes slower is slower everywhere; a run goes on with it, is not continued with another, and says it."""
    made = tree(KEY)
    said = through(made, *PRICED, "--made-up", "3")
    honoured(said, "theory")
    assert "made_up" in said["theory"].err
    asked = dict.fromkeys(("select", "measure", "fit", "train", "report"), ("--made-up", "3"))
    helped, schema, wrong, *others = made(
        ("run", "--help"),
        ("list", "--schema", "study"),
        ("run", "--made-up", "0.5"),
        *((name, "run", *flags) for name, flags in asked.items()),
    )
    assert "How much slower; default 1.0." in helped.out
    assert json.loads(schema.out)["properties"]["made_up"]["description"] == "How much slower."
    assert (wrong.code, wrong.err) == (2, "--made-up: expected at least 1, got 0.5; correct it\n")
    assert [each.err.partition(":")[0] for each in others if each.code == 2] == ["--made-up"] * len(asked)
    explained_alike(made, said, "total_ms")
    other, closed, plain = made(
        ("run", "--resume", "run", "--evaluations", 40, "--set", "made_up=2", *QUIET),
        ("run", *PRICED, "--set", "latency=closed_form", "--set", "made_up=3", *QUIET, "--out", "closed"),
        (
            "devices",
            "--config",
            "study.yaml",
            "--devices",
            DEVICE,
            "--preset",
            "device",
            "--no-plots",
            "--out",
            "plain",
        ),
    )
    assert (other.code, closed.code, plain.code) == (2, 2, 0)
    assert "scenario.made_up: 3.0 in the run, 2.0 now" in other.err
    assert "made_up" in closed.err
    slow, fast = (float(rows(made, f"{name}/picks.csv")[0]["loss_without_total_ms"]) for name in ("d", "plain"))
    assert slow >= fast
    assert rows(made, "d/models.csv")[0]["total_ms"] != rows(made, "plain/models.csv")[0]["total_ms"]
    predictions = json.loads((made.folder / "out/export.json").read_text())["predictions"]
    assert predictions["scenario"]["made_up"] == 3.0
    assert "made_up" in (made.folder / "run/report.html").read_text(encoding="utf-8")


def test_a_gene(tree: Tree) -> None:
    """Every design keeps its own; what has no formula for it says so."""
    made = tree((), VOCABULARIES)
    said = through(made, *PRICED, "--set", "precision=int4")
    honoured(said, "theory", "devices")
    assert "vocabulary" in said["theory"].err
    assert "vocabulary" in said["devices"].err
    explained_alike(made, said, "total_ms", "resident_gb")
    assert {int(row["vocabulary"]) for row in rows(made)} == set(VOCABULARIES)
    assert json.loads(said["explain"].out)["gains"] is not None
    best = json.loads(said["select"].out)
    assert "vocabulary" in json.dumps(best)
    exact = {row["vocabulary"] for row in rows(made, "exact/frontier.csv")}
    assert exact <= {str(value) for value in VOCABULARIES}
    assert "1 of 1 candidates as exported" in said["verify"].out
    assert "vocabulary" in (made.folder / "run/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["made_up", "made_of_parts"])
def test_a_metric(name: str, tree: Tree) -> None:
    """An objective of every command, with parts or without; theory's formulas know neither."""
    made = tree(METRIC)
    said = through(made, *PRICED, "--set", f"objectives=loss,{name}", "--budget", f"{name}=1e9")
    honoured(said, "theory")
    assert name in said["theory"].err
    explained_alike(made, said, name)
    assert name in rows(made, "out/candidates.csv")[0]
    assert name in (made.folder / "run/report.html").read_text(encoding="utf-8")
    assert name in rows(made, "d/picks.csv")[0]
