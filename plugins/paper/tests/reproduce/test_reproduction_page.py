"""The page of a reproduction: every claim with its verdict, filters by mouse and keys, marks that lead to claims, a stranger's file shown and not run."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from plas_paper.reproduce import FILE, record
from plas_paper.reproduce.claim import VERDICTS, statements

Inside = Callable[..., Any]
HOSTILE = "</script><img src=x onerror=\"document.title='taken'\"><b>&amp;'\"`${1}\x1b[1m"


def a_claim(key: str, verdict: str, **given: Any) -> dict[str, Any]:
    said = statements()[key]
    found = {"section": "Theory", "verdict": verdict, "found": "Ours.", "command": "plas reproduce"}
    made = {**vars(said), "corrections": list(said.corrections), "numbers": [], "designs": 13_120, "settings": 1}
    return {**made, **found, **given}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small record: a claim of every verdict in two sections."""
    keys = ("memory-rate", "dual-decode", "int8-gain", "weeks")
    verdicts = (VERDICTS[1], VERDICTS[2], VERDICTS[0], VERDICTS[3])
    claims = [a_claim(key, verdict) for key, verdict in zip(keys, verdicts, strict=True)]
    claims[2]["section"] = "Search and frontiers"
    claims[1]["numbers"] = [{"name": "η", "printed": 0.2176, "ours": 0.2, "exponent": False}]
    claims[0]["numbers"] = [{"name": "ρ* over width", "printed": -1.19, "ours": -1.1927, "exponent": True}]
    moving = {name: [4.0, 8.0] for name in ("depth", "width", "n_experts", "ffn_ratio")}
    frontier = {
        "phase": "prefill_ms",
        "precision": "fp16",
        "axis": "Prefill (ms)",
        "ms": [3.0, 9.0],
        "loss": [4.0, 3.0],
    }
    pictures = {
        "frontiers": [{**frontier, "moving": moving}],
        "names": {name: name for name in moving},
        "lengths": [256, 1024, 4096],
        "exponents": [{"name": "decode", "printed": 1.0, "exponents": [0.1, 0.5]}],
        "gains": {"printed": 19.42, "memory_gb": 0.7, "found": [vars_of_gain()]},
    }
    correction = {"label": "eq:x", "paper": "a quadratic", "holds": "linear"}
    content = {
        "format": record.FORMAT,
        "version": record.VERSION,
        "verdicts": dict.fromkeys(VERDICTS, 1),
        "claims": claims,
        "sensitivity": [{"setting": "int8", "frontier": "total"}],
        "corrections": [correction] * 26,
        "pictures": pictures,
    }
    (tmp_path / FILE).write_text(json.dumps(content))
    return tmp_path


def vars_of_gain() -> dict[str, Any]:
    return {"name": "any memory", "percent": 27.3, "memory_gb": 3.5, "design": "l 16"}


def changed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads((folder / FILE).read_text())
    change(content)
    (folder / FILE).write_text(json.dumps(content))


def words(folder: Path) -> str:
    page = re.sub(r"<(script|style).*?</\1>", "", (folder / "report.html").read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", page)))


def test_report_makes_the_page_from_the_folders_files_alone(folder: Path, inside: Inside) -> None:
    answer = inside("report", folder)
    assert answer.code == 0, answer.err
    said = words(folder)
    for claim in json.loads((folder / FILE).read_text())["claims"]:
        for part in ("text", "printed", "found", "corrected", "formula", "how", "label", "verdict"):
            assert claim[part] in said, part
    assert "13,120 designs in 1 setting of the model" in said
    assert 'href="#correction-5"' in (folder / "report.html").read_text()
    before = (folder / "report.html").read_bytes()
    assert inside("report", folder, "--quiet").code == 0
    assert (folder / "report.html").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda c: c.update(version=2), "not plas-reproduction 1"),
        (lambda c: c.pop("format"), "not plas-reproduction 1"),
        (lambda c: c["claims"][0].update(verdict="perhaps"), "claims.0.verdict"),
        (lambda c: c["claims"][0].update(key='x" onclick="'), "claims.0.key"),
        (lambda c: c.update(more=1), "more"),
        (lambda c: c["pictures"].pop("gains"), "pictures.gains"),
    ],
)
def test_what_is_no_record_is_refused_with_the_reason(
    change: Callable[[dict[str, Any]], Any], word: str, folder: Path, inside: Inside
) -> None:
    changed(folder, change)
    answer = inside("report", folder)
    assert answer.code == 2
    assert "expected what 'plas reproduce' writes" in answer.err
    assert word in re.sub(r"\s+", " ", answer.err)
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize("content", ["", "[]", "[" * 100_000, "\xff", '{"format": 1e999}'])
def test_a_broken_file_is_one_sentence(content: str, folder: Path, inside: Inside) -> None:
    (folder / FILE).write_text(content, encoding="latin-1")
    answer = inside("report", folder)
    assert answer.code == 2
    assert "expected what 'plas reproduce' writes" in answer.err


def test_a_page_of_anothers_is_not_replaced(tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "report.html").write_text("a run's")
    answer = inside("reproduce", "--out", tmp_path / "claims.md")
    assert answer.code == 2
    assert "another's report.html" in answer.err
    assert (tmp_path / "report.html").read_text() == "a run's"


def shown(page: Any) -> list[str]:
    found: list[str] = page.run(
        "return [...document.querySelectorAll('.claim')].filter(c => c.offsetParent).map(c => c.dataset.key)"
    )
    return found


@pytest.mark.slow
def test_boxes_filter_by_verdict_and_section_with_mouse_and_keys(folder: Path, inside: Inside, page: Any) -> None:
    keys = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (extra browser)").Keys
    inside("report", folder, "--quiet")
    page.open(folder / "report.html")
    assert len(shown(page)) == 4
    page.driver.find_element("css selector", f'input[value="{VERDICTS[2]}"]').click()
    assert "dual-decode" not in shown(page)
    assert page.text("#shown") == "3 of 4 claims shown"
    page.driver.find_element("css selector", 'input[value="Search and frontiers"]').send_keys(keys.SPACE)
    assert shown(page) == ["memory-rate", "weeks"]
    page.driver.find_element("id", "all").send_keys(keys.ENTER)
    assert len(shown(page)) == 4
    page.driver.find_element("css selector", "#claim-memory-rate summary").send_keys(keys.ENTER)
    assert page.run("return document.querySelector('#claim-memory-rate details').open")
    page.until("return document.querySelector('.claim.chosen')?.dataset.key === 'memory-rate'")
    assert "in the paper" in page.text("#claim-memory-rate details")


@pytest.mark.slow
def test_a_mark_leads_to_its_claim_even_where_it_is_filtered_out(folder: Path, inside: Inside, page: Any) -> None:
    inside("report", folder, "--quiet")
    page.open(folder / "report.html")
    for name in ("numbers", "exponents", "lengths", "gains", "frontier"):
        page.until("return document.getElementById(arguments[0]).dataset.ready === 'yes'", name)
    page.driver.find_element("css selector", f'input[value="{VERDICTS[2]}"]').click()
    page.run(
        "const [view] = Bokeh.index.roots.filter(v => v.el.closest('#numbers')); const all = view.model.renderers.map(r => r.data_source);"
        "const source = all.find(s => s.data.claim); source.selected.indices = [0];"
    )
    assert "dual-decode" in shown(page)
    assert page.run("return document.querySelector('#claim-dual-decode details').open")
    assert page.run("return document.activeElement.id") == "claim-dual-decode"


@pytest.mark.slow
def test_a_strangers_record_is_shown_and_not_run(folder: Path, inside: Inside, page: Any) -> None:
    def hostile(content: dict[str, Any]) -> None:
        fields = ("section", "text", "label", "printed", "how", "formula", "corrected", "found", "command")
        content["claims"][1].update(dict.fromkeys(fields, HOSTILE))
        content["claims"][1]["numbers"][0]["name"] = HOSTILE
        content["corrections"][0]["paper"] = HOSTILE
        content["pictures"]["frontiers"][0].update(precision=HOSTILE, axis=HOSTILE)

    changed(folder, hostile)
    assert inside("report", folder, "--quiet").code == 0
    page.open(folder / "report.html")
    page.until("return document.getElementById('frontier').dataset.ready === 'yes'")
    assert page.run("return document.querySelectorAll('img, main b').length") == 0
    assert page.driver.title == "The paper's claims, recomputed"
    assert HOSTILE.replace("\x1b", "\\u001b") in page.text("main")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_legible_named_and_fits_paper(scheme: str, folder: Path, inside: Inside, page: Any) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    inside("report", folder, "--quiet")
    page.open(folder / "report.html")
    page.until("return document.getElementById('frontier').dataset.ready === 'yes'")
    page.run("for (const folded of document.querySelectorAll('details')) folded.open = true")
    assert page.faint() == []
    assert page.unnamed() == []
    pages, cut = page.printed()
    assert pages > 1
    assert cut == []
    assert (
        page.run("return [...document.querySelectorAll('.filters, select')].filter(e => e.checkVisibility()).length")
        == 0
    )


@pytest.mark.slow
@pytest.mark.parametrize("after", ["typer", "numpy.linalg", "pydantic", "scipy", "nas.problem.problem"])
def test_ctrl_c_while_modules_are_imported_is_exit_130_without_a_traceback(after: str, commands: Any) -> None:
    _, *rest = commands.line("reproduce")
    process = commands.start("reproduce", args=[sys.executable, "-X", "importtime", *rest])
    for said in process.stderr:
        if said.split("|")[-1].strip() == after:
            process.send_signal(signal.SIGINT)
            break
    else:
        pytest.fail(f"{after} was never imported")
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert process.returncode == 130


@pytest.mark.slow
def test_the_command_says_that_it_was_interrupted(commands: Any) -> None:
    code = (
        "import sys, signal, os; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import plas_paper.reproduce.reproduction_page as page, plas_paper.reproduce.__main__ as door\n"
        "page.reproduction = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['reproduce']\n"
        "door.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=commands.folder,
        env=commands.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted before the end; give the command again\n")


@pytest.mark.parametrize("kind", ["a link to /dev/zero", "a pipe", "a folder", "a file of 50 GB"])
def test_no_record_of_a_strangers_folder_hangs_or_fills_memory(kind: str, folder: Path, inside: Inside) -> None:
    path = folder / FILE
    path.unlink()
    if kind == "a link to /dev/zero":
        path.symlink_to("/dev/zero")
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 50_000_000_000)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    answer = inside("report", folder)
    assert answer.code == 2
    assert answer.err.strip()
    assert time.process_time() - began < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # KB


def test_a_reproduction_stands_beside_no_other_page(folder: Path, copied: Path, inside: Inside) -> None:
    answer = inside("report", copied, folder)
    assert (answer.code, "got a page of its own; report it alone" in answer.err) == (2, True)


@pytest.mark.slow
def test_nothing_of_the_working_folder_is_imported(commands: Any, refused: Callable[..., str]) -> None:
    commands.write("yaml.py", "print('taken')")
    commands.write("report.html", "a run's")
    assert "another's report.html" in refused(commands("reproduce"))
