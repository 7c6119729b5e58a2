"""The pages as a reader meets them: links that lead somewhere, one index, words that the glossary explains, plain Markdown."""

import importlib
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from nas.terminal.doors import COMMANDS
from objectives.plugins import documents, importable
from tests.sources import BUNDLED_COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(DOCS.glob("*.md"))]
STUDIES = sorted((ROOT / "studies").glob("*/*.md"))
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
ELSEWHERE = ("http://", "https://", "mailto:")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def prose(text: str) -> str:
    """A page without its code blocks and comments."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(path: Path) -> set[str]:
    """The anchors that headings get on code hosts and on the site alike."""
    found: set[str] = set()
    for title in re.findall(r"^#{1,6} +(.*?) *$", prose(read(path)), flags=re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower())
        assert plain.replace(" ", "-") not in found, f"{path.name}: two headings {title!r}"
        found.add(plain.replace(" ", "-"))
    return found


def nowhere(page: Path) -> list[str]:
    """Links of a page that lead to no file or to no heading."""
    broken = []
    for link in LINK.findall(re.sub(r"`[^`]*`", "", prose(read(page)))):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        known = link.startswith(ELSEWHERE) or target.exists()
        if not known or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", [*PAGES, *STUDIES], ids=lambda path: path.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert nowhere(page) == []


@pytest.mark.parametrize("study", sorted((ROOT / "studies").glob("[a-z]*")), ids=lambda path: path.name)
def test_a_study_says_briefly_what_was_asked_and_found(study: Path) -> None:
    text = read(study / "README.md")
    words = [word for word in text.split() if any(letter.isalnum() for letter in word)]
    assert len(words) <= 250
    assert [name for name in ("Asked", "Run", "When", "Result") if f"**{name}" not in text] == []


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n[a](#a), [b](#b), [c](none.md), [d](page.md#a), [e](page.md#e), `[f](none)`\n```\n[g](none)\n```\n"
    )
    assert nowhere(page) == ["#b", "none.md", "page.md#e"]


@cache
def navigation() -> list[str]:
    """The pages of mkdocs.yml, in order."""
    lines = read(ROOT / "mkdocs.yml").partition("\nnav:\n")[2]
    return [
        page
        for section in yaml.safe_load(lines)
        for pages in section.values()
        for page in pages
        for page in page.values()
    ]


def test_every_page_stands_once_in_the_navigation() -> None:
    outer = {"changelog.md", "contributing.md"}  # CHANGELOG.md and CONTRIBUTING.md, see .ci/site.py
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(navigation()) == sorted(pages | outer)


def test_the_index_links_every_page() -> None:
    linked = {link.partition("#")[0] for link in LINK.findall(read(DOCS / "README.md"))}
    assert {path.name for path in DOCS.glob("*.md")} - {"README.md"} <= linked


@pytest.mark.parametrize("page", [*PAGES, *STUDIES], ids=lambda path: path.name)
def test_pages_are_plain_markdown(page: Path) -> None:
    """What only the site's tool reads looks like rubbish on a code host; nested text that is indented by two is lost by the tool."""
    text = prose(read(page))
    assert (
        re.findall(r'^ *(?:!!!|\?\?\?|:::|=== ").*|\{:.*?\}|\{#.*?\}|\{%.*?%\}|\[\[.*?\]\]', text, flags=re.MULTILINE)
        == []
    )
    unfenced = re.sub(r"^```.*?^```", "", read(page), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^ {1,3}(?:[-*] |\d+\. |```).*", unfenced, flags=re.MULTILINE) == []
    assert re.findall(r"^(?![-*] |\d+\. | |\n).+\n(?:[-*] |1\. ).*", text, flags=re.MULTILINE) == []


def test_every_picture_stands_in_the_gallery_with_what_makes_it() -> None:
    sections = re.split(r"^## ", read(DOCS / "gallery.md"), flags=re.MULTILINE)[1:]
    shown = [re.findall(r"!\[[^\]]+\]\(images/([^)]+)\)", section) for section in sections]
    made = [re.findall(r"`([^`\s]+\.(?:png|svg))`", section) for section in sections]
    assert [len(each) for each in made] == [len(each) for each in shown]
    assert sorted(name for names in shown for name in names) == sorted(
        path.name for path in (DOCS / "images").iterdir()
    )


PICTURE = re.compile(r"!\[(.*?)\]\(([^)\s]+)\)")
MANY = 8  # words, with which a text can say what a picture shows


def unsaid(text: str) -> list[str]:
    """Pictures of a page whose text in place of them is missing, too short to say what is seen, or no sentence's beginning."""
    return [picture for alt, picture in PICTURE.findall(prose(text)) if len(alt.split()) < MANY or not alt[0].isupper()]


@pytest.mark.parametrize("page", [*PAGES, DOCS / "data" / "README.md"], ids=lambda path: path.name)
def test_every_picture_says_what_is_seen(page: Path) -> None:
    assert unsaid(read(page)) == []


def test_a_picture_without_words_is_seen() -> None:
    said = "![](a.png) ![frontier](b.png) ![loss falls over time from left to right](c.png) ![Loss falls over time from left to right](d.png)"
    assert unsaid(said) == ["a.png", "b.png", "c.png"]


def first_hour() -> ModuleType:
    """tests/docs/first_hour.py, which stands beside samples.py."""
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        return importlib.import_module("first_hour")
    finally:
        sys.path.pop(0)


def test_the_readme_leads_a_new_user_from_nothing_to_files_for_training() -> None:
    steps = list(first_hour().steps(read(ROOT / "README.md")))
    assert steps[0].startswith(
        "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt . && .venv/bin/python -m nas.run"
    )
    assert steps[1].startswith("cat > board.yaml")
    assert [step.split()[:2] for step in steps[2:]] == [
        ["plas", name] for name in ("run", "explain", "select", "export", "report")
    ]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = re.findall(r"```bash\n(.*?)\n```", read(ROOT / "README.md"), flags=re.DOTALL)
    assert commands[1].endswith("-m pytest")
    assert f"\n{commands[1]}\n" in read(ROOT / ".ci" / "run")


FIELD = """active baseline bandwidth bootstrap budget certified closed form D-optimal dense draws exact expert FFN ratio frontier fused Huber's loss
hypervolume knee KV cache loss law native operator model peak penalty perplexity prefill profile quantile regime reject residual sd roofline run folder
seed strategy study sweep V-optimal vocabulary"""
ORDINARY = "AGX README CSV JSON YAML PNG SVG HTML URL COMMAND OPTIONS ARGS GPU CPU ID NO_COLOR LLM prior_guided"
METAVAR = re.compile(r"(--[\w-]+) +[A-Z][A-Z_=:|]+")
LITERAL = re.compile(r"\S*[=:/]\S*|\S+\.\w\S*|(?<!\w)'[^']*'|--\S+|<[^>]*>|\[[^\]]*\]")


@cache
def helps() -> str:
    """What all commands say with --help."""
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    said = [
        subprocess.run(
            [sys.executable, "-m", "nas", name, "--help"], capture_output=True, text=True, check=True, env=environment
        )
        for name in (*COMMANDS, *BUNDLED_COMMANDS)
    ]
    return "\n".join(ended.stdout for ended in said)


def explained() -> set[str]:
    """The words of the glossary: first and second cells of its tables."""
    rows = [
        re.split(r"(?<!\\)\|", line)[1:3] for line in read(DOCS / "glossary.md").splitlines() if line.startswith("| ")
    ]
    cells = ", ".join(cell.replace("`", "") for row in rows for cell in row)
    return {word.lower() for word in re.findall(r"[\w+@'-]+", cells)}


@pytest.mark.slow
def test_the_glossary_explains_the_words_of_help() -> None:
    names = {
        name
        for package in ("nas.strategies", "objectives.law_forms", "objectives.metrics")
        for name in importable(package)
    }
    names |= {name for package in ("objectives.laws", "configs") for name in documents(package)}
    text = LITERAL.sub(" ", METAVAR.sub(r"\1", helps()))
    short = set(re.findall(r"\b(?:[A-Z]{2,}[A-Z0-9+]*|[a-z]+_[a-z_]+)\b", text)) - names - set(ORDINARY.split())
    used = {word for word in FIELD.split() if re.search(rf"\b{re.escape(word)}\b", text)}
    known = explained()
    assert sorted(word for word in short | used if word.lower() not in known) == []


def test_the_glossary_has_what_answers_print() -> None:
    words = "l d E K r gqa r_single n_kv d_h m TTFT TPOT IGD+ epsilon gap knee canonical exact certified calibrated conformal ridge total_ms"
    assert sorted(word for word in words.lower().split() if word not in explained()) == []


def meanings() -> dict[str, str]:
    """The first sentence of each word's meaning in the glossary, without Markdown."""
    found = {}
    words, _, _ = read(DOCS / "glossary.md").partition("## Other words and spellings")
    for line in words.splitlines():
        if line.startswith("| ") and "---" not in line:
            *names, meaning = line.strip("| ").split(" | ")
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", meaning).replace("`", "").replace("*", "")
            first = re.split(r"(?<=[.?]) ", text)[0].removesuffix(".")
            found |= {name.strip(" `"): first for cell in names for name in cell.split(",")}
    return found


def test_pages_explain_words_as_the_glossary_does() -> None:
    known, shown = meanings(), json.loads(read(ROOT / "nas" / "pages" / "assets" / "glossary.json"))
    assert {word: known.get(word) for word in shown} == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_rows_of_a_table_have_as_many_cells(page: Path) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", prose(read(page)), flags=re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(cells) == 1, table


def test_the_glossary_is_in_one_form() -> None:
    for line in read(DOCS / "glossary.md").splitlines():
        if line.startswith("|") and "---" not in line:
            assert re.fullmatch(r"\|( [^|]+ \|){2,3}", line), line
