"""Hooks of mkdocs.yml: what makes a site of pages that are plain Markdown on a code host.

`<!-- api: NAME -->` in a page becomes the documentation of that name from its docstring. CHANGELOG.md and CONTRIBUTING.md, which stand
beside docs/, become pages; links to packages, studies and benchmarks, which have pages of their own, become their words. A built page that would load anything from another host fails the build.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OUTER = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
PACKAGE = re.compile(r"\[([^\]]*)\]\((?:\.\./)?(?:plugins|studies|benchmarks)/[^)]*\)")
API = re.compile(r"^<!-- api: (\S+) -->$", re.MULTILINE)
REMOTE = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*(?:src|data)=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?=[^>]*rel=["']?(?:stylesheet|preload|preconnect|icon|manifest))[^>]*href=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|url\(\s*["']?(?:https?:)?//[^"')]+|@import\s+["'](?:https?:)?//[^"']+""",
    re.IGNORECASE,
)


def on_files(files: Files, config: Any) -> Files:
    """The pages that stand beside docs/, with links as they are from inside it."""
    for name, page in OUTER.items():
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=_inside(text)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page as the site shows it."""
    return API.sub(r"::: \1", _inside(markdown))


def _inside(text: str) -> str:
    for name, page in OUTER.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}", f"]({page}", text)
    return PACKAGE.sub(r"\1", text)


def remote(text: str) -> list[str]:
    """What a page, a style sheet or a picture would load from another host."""
    return [found[0] for found in REMOTE.finditer(text)]


def on_post_build(config: Any) -> None:
    """Refuse a site that needs a network."""
    site = Path(config["site_dir"])
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".css", ".svg") and (found := remote(path.read_text(encoding="utf-8"))):
            raise PluginError(
                f"{path.relative_to(site)}: expected nothing of other hosts, got {found[0]!r}; ship it in docs/"
            )
