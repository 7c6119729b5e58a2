"""The documentation's site as mkdocs builds it: no warning, nothing of other hosts, every page, the API from docstrings."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("mkdocs", reason="needs the extra docs; .ci/run runs it in an environment of its own")
ROOT = Path(__file__).resolve().parents[2]
TYPED = """quantization, quantisation, docker, container, tensorboard, wandb, optimization, optimisation, optimizer, modeling, energy, power, jetson,
moe, mixture of experts, top-k, kv cache, gqa, out of memory, oom, latency, speed, tokens per second, throughput, ollama, gguf, llama.cpp, vllm,
tensorrt, mlx, raspberry pi, iphone, android, bayesian optimization, genetic algorithm, neural architecture search, hardware-aware, color, colour,
license, licence, tokenizer, tokeniser, analyze, behavior, fine-tuning, lora, ssm, speculative decoding, offloading, microcontroller, mmlu, battery,
jupyter, distributed, error bars, privacy, reproducible"""  # what users type into the search box


def build(checkout: Path, site: Path) -> tuple[int, list[str]]:
    """The exit code of a strict build and its warnings. Not with --quiet: warnings it hides are not counted either."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False, env=environment)
    return ended.returncode, [line for line in ended.stderr.splitlines() if not line.startswith("INFO ")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with every warning an error."""
    folder = tmp_path_factory.mktemp("site")
    assert build(ROOT, folder) == (0, [])
    return folder


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """.ci/site.py"""
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / ".ci" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_built(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"} | {"index", "changelog", "contributing"}
    assert pages == {path.stem for path in site.glob("*.html")} - {"404", "at-a-glance"}


FAULTS = {
    "glossary.md": (
        "[dead](nowhere.md) [missing](search.md#no-such-heading) ![gone](images/no-such.png)",
        ["'nowhere.md'", "'search.md#no-such-heading'", "'images/no-such.png'"],
    ),
    "stray.md": ("# A page that no reader finds", ["stray.md"]),
}


def test_dead_links_missing_anchors_lost_pictures_and_stray_pages_fail_the_build(tmp_path: Path) -> None:
    """Each fault is one warning, and nothing else is."""
    copy = tmp_path / "checkout"
    for name in ("docs", "nas", "objectives", "search_spaces", "plugins/fit", ".ci"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, copy / name)
    for name, (text, _) in FAULTS.items():
        with (copy / "docs" / name).open("a", encoding="utf-8") as page:
            page.write(f"\n{text}\n")
    code, said = build(copy, tmp_path / "site")
    assert code == 1
    for fault in (fault for _, faults in FAULTS.values() for fault in faults):
        assert len([line for line in said if fault in line]) == 1, (fault, said)


def test_no_markdown_is_left_over(site: Path) -> None:
    """A list, a table or a fence that the tool did not see, as after an indented paragraph, stands in the text as it was typed."""
    for page in sorted(site.glob("*.html")):
        text = re.sub(
            r"<(pre|script|style)\b.*?</\1>|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        assert re.findall(r"^(?: *[-*|#] | *```|\d+\. ).*", text, flags=re.MULTILINE) == [], page.name
        assert re.findall(r"\]\((?!\d)[^)]*\)|\*\*", re.sub(r"<code>.*?</code>", "", text, flags=re.DOTALL)) == [], (
            page.name
        )


def test_the_api_page_is_made_of_docstrings(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")
    for name in ("nas.load_study", "nas.Frontier", "nas.testing.check_strategy", "objectives.loss_law.form.Form"):
        assert f'id="{name}"' in page
    assert "Feasible architectures that no other dominates, sorted by the objectives." in page
    assert "<!-- api:" not in page


def test_the_examples_of_the_api_are_code(site: Path) -> None:
    """As many highlighted blocks with a prompt as docstrings have sections of examples."""
    page = (site / "api.html").read_text(encoding="utf-8")
    shown = [block for block in re.findall(r"<pre\b.*?</pre>", page, flags=re.DOTALL) if "&gt;&gt;&gt;" in block]
    written = [
        found
        for path in [*(ROOT / "nas" / "api").glob("*.py"), ROOT / "plugins/fit/plas_fit/fitted_law.py"]
        for found in re.findall(r"^ *Examples?:$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    ]
    assert len(shown) == len(written) >= 15
    assert "<blockquote>" not in page


@pytest.fixture(scope="module")
def entries(site: Path) -> list[set[str]]:
    """The words of every entry of the search's index, split as the site's search splits them."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    texts = (re.sub(r"<[^>]+>", " ", f"{entry['title']} {entry['text']}") for entry in index["docs"])
    return [{word.strip(".,;:()") for word in re.split(index["config"]["separator"], text.lower())} for text in texts]


@pytest.mark.parametrize("typed", TYPED.replace("\n", " ").split(", "))
def test_the_search_finds_what_people_type(entries: list[set[str]], typed: str) -> None:
    """All words of a question begin words of one entry; the search leaves words such as `of` out."""
    asked = [word for word in re.split(r"[\s\-]+", typed) if word not in ("of", "per", "out")]
    assert any(all(any(word.startswith(part) for word in entry) for part in asked) for entry in entries)


def test_the_search_finds_nothing_that_no_page_says(entries: list[set[str]]) -> None:
    assert not any(word.startswith("zirconium") for entry in entries for word in entry)


def test_the_search_knows_the_glossary(entries: list[set[str]]) -> None:
    assert any({"inverted", "generational", "distance"} <= entry for entry in entries)


@pytest.mark.parametrize(
    "loads",
    [
        '<script src="https://example.org/a.js"></script>',
        "<img alt='' src='//example.org/a.png'>",
        '<link rel="stylesheet" href="https://example.org/a.css">',
        '<link href="https://example.org" rel="preconnect">',
        '@font-face { src: url("https://example.org/a.woff2") }',
        "@import 'https://example.org/a.css'",
    ],
)
def test_what_would_load_from_another_host_is_refused(hooks: ModuleType, tmp_path: Path, loads: str) -> None:
    (tmp_path / "page.html").write_text(loads)
    with pytest.raises(hooks.PluginError, match=r"page.html: expected nothing of other hosts"):
        hooks.on_post_build({"site_dir": tmp_path})


def test_links_to_other_hosts_are_no_loads(hooks: ModuleType) -> None:
    assert hooks.remote('<a href="https://example.org">x</a> <link rel="canonical" href="https://example.org/">') == []
