"""A run's page: the same bytes from the search and from its folder, harmless whatever it is told, the rows that picks need."""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.answer.outcome import Outcome
from nas.answer.past_run import recalled, recorded_run
from nas.answer.three_sentences import three_sentences
from nas.commands.report import report
from nas.commands.requests import ReportRequest
from nas.errors import PlasError
from nas.pages import page as page_module
from nas.pages import run_data as run_data_module
from nas.pages.page import column, configuration, element, embedded, policy, text
from nas.pages.run_data import rows_of, run_data
from nas.pages.run_page import run_page
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from objectives.display_text import in_a_command
from tests.nas.pages.told import data, words

RunOf = Callable[..., Path]
Concluded = Callable[..., Outcome]
Inside = Callable[..., Any]
ODD = "\u2028</script><!--&\u202e\x1b[1m"


class Reader(HTMLParser):
    """Tags of a page, with the text inside scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts.append(data)


def assert_same(again: bytes, written: bytes) -> None:
    """Pages are the same; shown from where they differ, as a diff of megabytes takes hours."""
    pairs = enumerate(zip(again, written, strict=False))
    at = next((at for at, (a, b) in pairs if a != b), min(len(again), len(written)))
    assert again[at:][:400] == written[at:][:400]


@pytest.mark.slow
@pytest.mark.parametrize(
    "study",
    [{}, {"budgets": {"total_ms": 1e-3}}, {"objectives": ["loss"]}, {"flags": {"algo": "exact"}}, {"preset": "device"}],
    ids=str,
)
def test_the_page_of_a_folder_is_the_page_of_its_search(
    study: dict[str, Any], tiny: dict[str, Any], run_of: RunOf
) -> None:
    run = run_of(space=tiny, **study)
    written = (run / "report.html").read_bytes()
    assert report(ReportRequest(run, None, quiet=True)) == run / "report.html"
    assert_same((run / "report.html").read_bytes(), written)


@pytest.mark.slow
def test_own_metrics_are_shown_without_being_called(
    tiny: dict[str, Any], run_of: RunOf, user_module: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = user_module("def energy(a):\n    return a.depth * a.width / 1e3\nenergy.LOG_SCALE = True\n")
    run = run_of(space=tiny, objectives=["loss", f"{module}:energy"], budgets={f"{module}:energy": 9})
    written = (run / "report.html").read_bytes()
    monkeypatch.setattr("nas.study.user_code.imported", lambda _: pytest.fail("imported"))
    report(ReportRequest(run, None, quiet=True))
    assert_same((run / "report.html").read_bytes(), written)
    assert f"{module}:energy".encode() in written


@pytest.mark.parametrize("budgets", [{}, {"total_ms": 1e-3}], ids=str)
def test_without_scripts_the_answer_stands_first_and_the_tables_below(
    budgets: dict[str, Any], tiny: dict[str, Any], run_of: RunOf
) -> None:
    run = run_of(space=tiny, budgets=budgets)
    said = three_sentences(recalled(recorded_run(run)))
    assert said is not None
    opening, *folds = (run / "report.html").read_text().partition('id="data"')[0].split('<details class="fold">')
    plain = unescape(re.sub("<[^>]+>", "", opening))
    assert said.train in plain
    assert said.takes in plain
    assert (said.buys in plain) == bool(budgets)
    titles = [re.findall("<h2>(.*?)</h2>", fold)[0] for fold in folds]
    assert titles[0] == ("No feasible architecture" if budgets else "Answer")
    assert titles[-1] == "The study, and how to repeat it"
    assert ("<table>" in folds[0]) == (not budgets)


def test_commands_name_no_folder_of_the_machine_that_made_them(tiny: dict[str, Any], run_of: RunOf) -> None:
    run = run_of("my run", space=tiny)
    content = data(run / "report.html")
    assert content["commands"] == {
        "select": "python -m nas.select RUN --select best",
        "explain": "python -m nas.explain RUN",
    }
    shown = words(run / "report.html")
    assert "python -m nas.run --config RUN" in shown
    assert "RUN is the folder of this run, my run:" in shown


def test_a_run_that_has_not_ended_says_so(copied: Path) -> None:
    (copied / "summary.json").unlink()
    manifest = json.loads((copied / "manifest.json").read_text()) | {"state": "interrupted"}
    (copied / "manifest.json").write_text(json.dumps(manifest))
    outcome = recalled(recorded_run(copied))
    assert outcome.ending.reason == "not at its end, the run is interrupted"
    report(ReportRequest(copied, None, quiet=True))
    assert "stopped: not at its end, the run is interrupted." in (copied / "report.html").read_text()


def test_an_unfinished_exact_run_is_not_called_exact(tiny: dict[str, Any], run_of: RunOf) -> None:
    run = recorded_run(run_of(space=tiny, flags={"algo": "exact"}))
    assert recalled(run).whole
    outcome = recalled(replace(run, evaluations=run.evaluations[:80]))
    assert not outcome.whole
    assert outcome.ending.reason == "unknown, summary.json is not of these evaluations"
    assert "Exact: " not in run_page(outcome, "run", {}, {})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["summary.json", "manifest.json"])
@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"evaluations": 3, "versions": 4}', '{"evaluations": {"distinct": 60}, "space": []}']
)
def test_a_strangers_files_break_no_page(name: str, content: str, copied: Path) -> None:
    (copied / name).write_text(content)
    report(ReportRequest(copied, None, quiet=True))
    assert "</html>" in (copied / "report.html").read_text()


def test_what_a_strategy_learned_is_shown_without_its_package(copied: Path) -> None:
    summary = json.loads((copied / "summary.json").read_text())
    (copied / "summary.json").write_text(json.dumps(summary | {"lessons": [f"A lesson. {ODD}", 3], "learned": 4}))
    report(ReportRequest(copied, None, quiet=True))
    page = (copied / "report.html").read_text()
    assert "<h2>What was learned</h2></summary><p>A lesson. \\u2028&lt;/script&gt;" in page
    assert "<img src=" not in page


def test_a_link_in_the_pages_place_is_replaced_and_not_followed(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (copied / "report.html").unlink(missing_ok=True)
    (copied / "report.html").symlink_to(tmp_path / "mine.txt")
    report(ReportRequest(copied, None, quiet=True))
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert not (copied / "report.html").is_symlink()


def test_what_the_command_refuses(inside: Inside, refused: Any, copied: Path, tmp_path: Path) -> None:
    assert inside("report", tmp_path / "none").code == 2
    (tmp_path / "comparison.yaml").write_text("")
    assert "plas compare --resume" in inside("report", tmp_path).err
    there = tmp_path / "there.html"
    there.write_text("")
    answer = inside("report", copied, "--out", there)
    assert answer.code == 2
    assert "--out" in answer.err
    assert inside("report", copied, "--out", tmp_path / "new.html", "--quiet").code == 0
    assert (tmp_path / "new.html").stat().st_size > 1_000_000


def test_nothing_of_the_page_comes_from_elsewhere(tiny: dict[str, Any], run_of: RunOf) -> None:
    page = Reader((run_of(space=tiny) / "report.html").read_text(encoding="utf-8"))
    for tag, attributes in page.tags:
        assert not {"src", "href", "srcset", "action"} & attributes.keys() or str(attributes.get("href")).startswith(
            "#"
        ), tag
        assert not [name for name in attributes if name.startswith("on")], tag
    (allowed,) = [
        a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in str(allowed)
    assert "unsafe-eval" not in str(allowed)
    assert (
        len(re.findall("'sha256-", str(allowed)))
        == sum(tag == "script" and "type" not in a for tag, a in page.tags)
        == 3
    )


def test_embedded_text_ends_no_script_and_no_line() -> None:
    written = embedded({ODD: [ODD, float("nan"), 1e-300]})
    assert not set(written) & {"<", ">", "&", "\u2028", "\u2029"}
    assert json.loads(written) == {ODD: [ODD, None, 1e-300]}


def test_marked_up_text_is_text() -> None:
    assert (
        element("p", text(ODD), data_x='"<')
        == '<p data-x="&quot;&lt;">\\u2028&lt;/script&gt;&lt;!--&amp;\\u202e\\u001b[1m</p>'
    )
    assert element("p", hidden=None, class_=False) == "<p></p>"


def test_a_long_configuration_is_cut_saying_so() -> None:
    assert "<pre>a: 1\n</pre>" in configuration({"a": 1})
    assert configuration({"a": "x" * 70_000}).endswith("x\n… config.yaml holds all of it</pre></details>")


@pytest.mark.parametrize(("name", "written"), [("a", "a"), ("a b", "'a b'"), ("$(id)", "'$(id)'"), ("-x", "./-x")])
def test_a_folder_is_one_word_of_a_command(name: str, written: str) -> None:
    assert in_a_command(name) == written


@pytest.mark.parametrize("exactly", [True, False])
@pytest.mark.parametrize(
    "values",
    [[], [3], [1.5, 1.5], [0, 255], [0, 256], [-1, 5], [0, 2**40], [1e-9, np.nan, 2.0], [True, False]],
    ids=str,
)
def test_a_column_reads_back(values: list[Any], exactly: bool) -> None:
    given = np.array(values)
    written = column(given, exactly=exactly)
    if "all" in written:
        read = np.full(written["n"], written["all"], dtype=np.float64)
    else:
        kinds = {"u8": "<u1", "u16": "<u2", "i32": "<i4", "f32": "<f4", "f64": "<f8"}
        read = np.frombuffer(base64.b64decode(written["base64"]), dtype=kinds[written["kind"]]).astype(np.float64)
    expected = given.astype(np.float64)
    np.testing.assert_allclose(read, expected, rtol=0 if exactly or given.dtype.kind != "f" else 1e-7)


def test_a_number_beyond_four_bytes_is_infinite() -> None:
    assert np.frombuffer(base64.b64decode(column(np.array([1e300, 2.0]))["base64"]), "<f4").tolist() == [np.inf, 2.0]


def picks(found: Evaluations, order: Any, movable: tuple[str, ...], rng: np.random.Generator) -> None:
    """Of random budgets, also ones at a row's own value, the first row in order is select's pick."""
    for _ in range(200):
        names = rng.choice(np.array(movable), size=rng.integers(1, 3), replace=False)
        row = rng.integers(len(found))
        budgets = tuple(
            Budget(str(n), float(found.metrics[str(n)][row]) * rng.choice([1.0, 1.0, 0.9, 1.3])) for n in names
        )
        asked = replace(found, budgets=budgets)
        meeting = order[asked.feasible[order]]
        assert (int(meeting[0]) if len(meeting) else None) == PickRule(None).row(asked)


def test_the_first_row_within_any_budgets_is_the_pick(concluded: Concluded) -> None:
    outcome = concluded(
        162,
        law={
            "name": "t",
            "form": "depth_width",
            "coefficients": {"kappa_l": 5, "alpha_l": 1, "kappa_d": 9, "beta": 0.5, "l_inf": 2},
        },
    )
    held = rows_of(outcome)
    assert set(held.movable) == set(outcome.evaluations.metrics)
    picks(outcome.evaluations, held.chosen, held.movable, np.random.default_rng(1))


@pytest.mark.parametrize("objectives", [["loss", "total_ms"], ["loss", "decode_ms", "resident_gb"]])
def test_a_large_run_holds_what_budgets_on_its_metrics_can_pick(
    objectives: list[str], concluded: Concluded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_data_module, "MOST", 50)
    monkeypatch.setattr(run_data_module, "DRAWN", 10)
    outcome = concluded(162, objectives=objectives)
    held = rows_of(outcome)
    assert len(held.chosen) < 162
    assert set(held.movable) == {*objectives, "memory_gb"}
    assert "select takes any metric" in held.why
    picks(outcome.evaluations, held.chosen, held.movable, np.random.default_rng(2))
    monkeypatch.setattr(run_data_module, "PICKABLE", 1)
    assert rows_of(outcome).movable == ()


def test_no_budget_on_extrapolation_can_be_moved(concluded: Concluded) -> None:
    outcome = concluded(162, law="evidence", outside="mark")
    held = rows_of(outcome)
    assert set(held.movable) - set(run_data(outcome, held)["movable"]) == {"extrapolation"}


def test_failed_rows_are_not_held(concluded: Concluded, user_module: Callable[[str], str]) -> None:
    name = (
        user_module("import numpy as np\ndef odd(a):\n    return np.where(a.depth == 4, np.nan, a.depth / 3)\n")
        + ":odd"
    )
    outcome = concluded(100, objectives=["loss", name])
    assert not outcome.evaluations.ok.all()
    assert outcome.evaluations.ok[rows_of(outcome).chosen].all()


def test_without_bokeh_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "find_spec", lambda _: None)
    with pytest.raises(PlasError, match="install it"):
        page_module.bokeh_scripts()


def test_the_policy_names_every_script() -> None:
    assert policy(["a", "b"]).count("sha256-") == 2
