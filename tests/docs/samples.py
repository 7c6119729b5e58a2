"""The samples of the documentation: run every shell block of a page, compare what is printed, or write it again.

python tests/docs/samples.py [--check] [PAGE ...]

Without --check the pages are rewritten in place; what differs only in masked numbers (times, versions, dates) stays as it is.
docs/testing.md says how a block is marked. A page is also wrong if it does not show a phrase of the mark `shows`, or if … leaves out a caution
about the answer that the page has not shown before.
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]
ELISION = "…"
LIMIT_S = 600
FENCE = re.compile(r"^( *)```(\w*)\s*$")
MARK = re.compile(r"^ *<!-- (not run|setup|file|from|exit|shows): (.*?) ?(-->)?$")
CAUTION = re.compile(
    r"^ *(?:Warning|Caution)\b.*|wrongly favours|error unknown|On the real device|none of them is like|no training supports|"
    r"fitted on other designs|Do not rely"
)
PROGRESS = re.compile(r"^[\d,]+( of [\d,]+)?, [\d,]+/s|^\S.* …$")
MASKS = [
    (re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?"), "DATE"),
    (re.compile(r"\d+\.\d+\.\d+[\w.+]*"), "VERSION"),
    (re.compile(r"[\d,.]+ ?(s|min|h|seconds|minutes|hours)\b"), "TIME"),
    (re.compile(r"[\d,.]+/s\b"), "RATE"),
    (re.compile(r"\d+(\.\d+)?e-1\d"), "ROUNDING"),
    (re.compile(r"\s+"), " "),
]


@dataclass
class Block:
    """A fenced block: its lines without the fence's indent, where they stand, and its marks."""

    language: str
    lines: list[str]
    start: int
    indent: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """file, not run, from, bash, console, data (yaml and such; a diff is applied by a test of its own), text (an illustration) or unknown."""
        for mark in ("not run", "file", "from"):
            if mark in self.marks:
                return mark
        if self.language:
            return {"bash": "bash", "python": "python", "text": "text", "yaml": "data", "diff": "data"}.get(
                self.language, "unknown"
            )
        return "console" if self.lines and self.lines[0].startswith("$ ") else "unknown"


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in order, with the HTML comments directly before each."""
    found: list[Block] = []
    marks: dict[str, str] = {}
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        if mark := MARK.match(lines[i]):
            value = [mark[2]]
            while not lines[i].rstrip().endswith("-->"):
                i += 1
                value.append(lines[i].rstrip().removesuffix("-->").rstrip())
            marks[mark[1]] = "\n".join(value).strip()
        elif fence := FENCE.match(lines[i]):
            start, indent = i + 1, fence[1]
            while lines[i := i + 1].strip() != "```":
                pass
            inside = [line.removeprefix(indent) for line in lines[start:i]]
            found.append(Block(fence[2], inside, start, indent, marks))
            marks = {}
        elif lines[i].strip():
            marks = {}
        i += 1
    return found


def masked(line: str) -> str:
    """A line without what changes from run to run."""
    for pattern, word in MASKS:
        line = pattern.sub(word, line)
    return line.strip()


def same(sample: str, line: str) -> bool:
    """Whether a line of a sample says what was printed; … inside it stands for any text."""
    if masked(sample) == masked(line):
        return True
    parts = [re.escape(masked(part)) for part in sample.split(ELISION)]
    return len(parts) > 1 and re.fullmatch(r"\s*.*?\s*".join(parts), masked(line)) is not None


def kept(sample: Sequence[str], printed: Sequence[str]) -> list[str]:
    """What was printed, line by line as the sample has it where it says the same.

    Columns may stand elsewhere only where numbers that change from run to run push them about.
    """
    moving = any(masked(line) != " ".join(line.split()) for line in printed)
    pairs = zip(sample, printed, strict=False)
    before = [old if same(old, new) and (moving or ELISION in old) else new for old, new in pairs]
    return before + list(printed[len(sample) :])


def updated(sample: Sequence[str], printed: Sequence[str], *, excerpt: bool = False) -> list[str]:
    """The sample as what was printed makes it: equal to the sample if nothing has changed.

    Lines … leave any number of lines out. An excerpt begins anywhere and ends with a section (a blank line) unless it ends
    with …. Where lines are left out, each part is the part of what was printed that resembles it most, of the same length.
    """
    rows = [ELISION, *sample] if excerpt else list(sample)
    if ELISION not in rows:
        return kept(rows, printed)
    parts = _parts(rows)
    found: list[list[str]] = []
    place = 0
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if number > 0:
            place = _alike(part, printed, place)
        if last and part and excerpt:
            end = next((i for i in range(place + len(part), len(printed)) if not printed[i]), len(printed))
            end = max(end, place + len(part))
        elif last and part:
            end, place = len(printed), max(place, len(printed) - len(part))
        else:
            end = place + len(part)
        found.append(kept(part, printed[place:end]))
        place = end
    joined = [line for part in found for line in (ELISION, *part)][1:]
    return joined[1:] if excerpt else joined


def _parts(rows: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for row in rows:
        if row == ELISION:
            parts.append([])
        else:
            parts[-1].append(row)
    return parts


def _alike(part: Sequence[str], printed: Sequence[str], begin: int) -> int:
    """Where, from `begin` on, the lines printed resemble a part most."""
    if not part:
        return begin
    places = range(begin, max(begin, len(printed) - len(part)) + 1)
    scores = [sum(map(_likeness, part, printed[place : place + len(part)])) for place in places]
    return places[scores.index(max(scores))]


def _likeness(sample: str, line: str) -> float:
    if same(sample, line):
        return 2.0
    shapes = [re.sub(r"[\d.,]+", "0", masked(text)) for text in (sample, line)]
    return difflib.SequenceMatcher(None, *shapes, autojunk=False).ratio()


class Page:
    """A page whose blocks are run in order, in a folder of its own."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder, self.said, self.codes = folder, dict[str, list[str]](), dict[str, int]()
        self.printed, self.shown = list[str](), list[str]()  # by the block that runs; by the page so far
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        self.environment = {"PATH": path, "HOME": str(folder / ".home"), "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        self.environment |= {"COLUMNS": "120", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1", "MPLCONFIGDIR": str(shared)}
        (folder / ".home").mkdir()

    def run(self, script: str) -> tuple[int, list[str]]:
        """Exit code and lines printed, on either stream, without progress and without the folder's name."""
        ended = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_S,
            check=False,
        )
        text = ended.stdout.decode("utf-8", "replace").replace(f"{self.folder}/", "")
        lines = [line.rstrip() for line in text.split("\n") if not PROGRESS.match(line)]
        while lines and not lines[-1]:
            lines.pop()
        return ended.returncode, lines

    def known(self, command: str) -> list[str]:
        """What a command printed when it was run on this page; it is run if it was not."""
        if command not in self.said:
            code, self.said[command] = self.run(command)
            self.codes[command] = code
        self.printed += self.said[command]
        return self.said[command]

    def block(self, block: Block) -> tuple[list[str], str]:
        """The lines that a block should have, and what is wrong with what it ran."""
        if setup := block.marks.get("setup"):
            code, lines = self.run(setup)
            if code:
                return block.lines, f"setup ended with exit code {code}:\n" + "\n".join(lines)
        self.printed = []
        if block.kind == "file":
            path = self.folder / block.marks["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        if block.kind in ("bash", "python"):
            return block.lines, self.script(block) or self.unsaid(block, [])
        lines = list(self.console(block)) if block.kind == "console" else block.lines
        if fault := self.newly_failed(block):
            return block.lines, fault
        if block.kind == "from":
            lines = updated(block.lines, self.known(block.marks["from"]), excerpt=True)
        self.shown += lines
        return lines, self.unsaid(block, lines)

    def unsaid(self, block: Block, lines: Sequence[str]) -> str:
        """Phrases of the mark `shows` that the block does not show, or print if it is a script, and cautions that its … leaves out."""
        text = " ".join(" ".join(lines if block.kind in ("console", "from") else self.printed).split())
        wrong = [
            f"expected {phrase!r}, got none"
            for phrase in block.marks.get("shows", "").split("\n")
            if phrase not in text
        ]
        if block.kind == "console":
            shown, rows = " ".join(" ".join(self.shown).split()), [row for row in self.shown if row != ELISION]
            cautions = [words.strip() for line in self.printed for words in CAUTION.findall(line)]
            cut = [words for words in cautions if words not in shown and not any(same(row, words) for row in rows)]
            wrong += [f"… leaves out {words!r}" for words in cut]
        return "\n".join(wrong)

    def script(self, block: Block) -> str:
        """What is wrong with a script: another exit code than it should have, or a traceback."""
        text = "\n".join(block.lines)
        if block.kind == "python":
            (self.folder / ".sample.py").write_text(text, encoding="utf-8")
            text = "PYTHONPATH=. python .sample.py"
        code, lines = self.run(text)
        self.said[text] = self.printed = lines
        if code == int(block.marks.get("exit", "0")) and not any(line.startswith("Traceback") for line in lines):
            return ""
        return f"ended with exit code {code}:\n" + "\n".join(lines[-20:])

    def newly_failed(self, block: Block) -> str:
        """The first command of a console block that fails with a message of which the page shows no line; "" if none does."""
        for command, sample in commands_of(block.lines) if block.kind == "console" else ():
            script = _script(command)
            printed = self.said[script]
            if self.codes[script] and printed and not any(same(line, printed[-1]) for line in sample):
                return f"{command[0]}\nended with exit code {self.codes[script]}:\n" + "\n".join(printed[-20:])
        return ""

    def console(self, block: Block) -> Iterator[str]:
        """The block with what its commands print now."""
        for command, sample in commands_of(block.lines):
            yield from command
            trailing = [""] * (len(sample) - len(_stripped(sample)))
            yield from updated(_stripped(sample), self.known(_script(command)))
            yield from trailing


def _script(command: Sequence[str]) -> str:
    """The lines of a command as a shell runs them."""
    return "\n".join([command[0].removeprefix("$ "), *command[1:]])


def _stripped(lines: Sequence[str]) -> list[str]:
    """Lines without blank ones at the end."""
    last = max((i for i, line in enumerate(lines) if line.strip()), default=-1)
    return list(lines[: last + 1])


def commands_of(lines: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """The commands of a console block, `$ ` first and continued after a backslash, each with what follows it."""
    found: list[tuple[list[str], list[str]]] = []
    for line in lines:
        if line.startswith("$ "):
            found.append(([line], []))
        elif found[-1][0][-1].endswith("\\") and not found[-1][1]:
            found[-1][0].append(line)
        else:
            found[-1][1].append(line)
    return found


def renewed(text: str) -> tuple[str, list[str]]:
    """The page with every sample as it is printed now, and what is wrong with blocks that could not be run."""
    lines, wrong = text.split("\n"), list[str]()
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as shared:
        page = Page(Path(work).resolve(), Path(shared))
        changes: list[tuple[Block, list[str]]] = []
        for block in blocks_of(text):
            try:
                after, fault = page.block(block)
            except subprocess.TimeoutExpired:
                after, fault = block.lines, f"took more than {LIMIT_S} s"
            if fault:
                wrong.append(f"line {block.start}: {fault}")
            changes.append((block, after))
        for block, after in reversed(changes):
            indented = [(block.indent + line).rstrip() if line.strip() else "" for line in after]
            if after != block.lines:
                lines[block.start : block.start + len(block.lines)] = indented
    return "\n".join(lines), wrong


def checked(name: str, *, rewrite: bool = False) -> list[str]:
    """What is wrong with a page, as lines to print; with `rewrite` stale samples are put right, unless something is wrong."""
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    after, wrong = renewed(text)
    if rewrite and after != text and not wrong:
        path.write_text(after, encoding="utf-8")
    elif after != text and not rewrite:
        wrong += difflib.unified_diff(text.split("\n"), after.split("\n"), name, "printed now", lineterm="", n=1)
    return wrong


def main() -> int:
    """Check or rewrite pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", default=PAGES)
    parser.add_argument("--check", action="store_true", help="change nothing; say what is stale")
    given = parser.parse_args()
    if shutil.which("plas", path=str(Path(sys.executable).parent)) is None:
        sys.exit("plas: expected it beside this Python; install the checkout with pip install -e '.[test]'")
    failed = False
    for name in given.pages:
        wrong = checked(name, rewrite=not given.check)
        failed |= bool(wrong)
        sys.stdout.write("\n".join([f"{name}: {'wrong' if wrong else 'as printed'}", *wrong]) + "\n")
        sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
