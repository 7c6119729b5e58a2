"""The animated terminal: `plas demo` recorded on a screen of 80 × 24 as docs/demo.cast, and drawn as docs/images/demo.svg.

python -m tests.docs.cast               # from the root of a checkout; it takes a minute
python -m tests.docs.cast --draw        # the picture again, from the recording

The recording is an asciinema cast (version 2). Output is as it came; Enter is pressed after a time to read, and the rest is brought to 40 s.
"""

import codecs
import json
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fcntl import ioctl
from html import escape
from itertools import groupby
from pathlib import Path

from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from nas.commands.demo import START
from nas.commands.tour import STEPS
from tests.nas.terminal.screens import standing

ROOT = Path(__file__).resolve().parents[2]
CAST, PICTURE = ROOT / "docs" / "demo.cast", ROOT / "docs" / "images" / "demo.svg"
COLUMNS, ROWS = 80, 24
READ_S = (1.5, 2.0, 8.0, 5.0, 5.0, 3.0)  # before Enter runs a step, with the answer of the step before on the screen
LAST_S = 4.0  # that the end stands
LENGTH_S = 40.0  # of the whole: typing and results share what is not reading
WAIT_S = 1.0  # that nothing comes is shortened to this, before they share
FRAME_S = 0.12  # the least time between two frames
SILENT_S = 0.4  # after which a command that has typed itself waits for Enter
LIMIT_S = 300
HOME = "/home/you"  # in the place of the folder that the recording was made in

Event = tuple[float, str]


def recorded() -> list[Event]:
    """Times in seconds and what was written then, from the first character to the end."""
    with tempfile.TemporaryDirectory(prefix="") as made:
        place = os.path.realpath(made)
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(place)
            kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
            line = [sys.executable, "-P", "-c", START, str(ROOT), "demo", "--no-open", "--out", "tour"]
            os.execve(sys.executable, line, {**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
        ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        events = list(_played(terminal))
        _, status = os.waitpid(child, 0)
        if status:
            raise SystemExit(
                f"plas demo: expected exit code 0, got {os.waitstatus_to_exitcode(status)}; look at its output"
            )
    share = (LENGTH_S - LAST_S - sum(READ_S)) / events[-1][1]
    return [(round(read + at * share, 3), text.replace(place, HOME)) for read, at, text in events]


def _played(terminal: int) -> Iterator[tuple[float, float, str]]:
    """Seconds of reading and of the program until then, and what comes; Enter is pressed for each command that has typed itself."""
    written, shown, last, entered = "", 0.0, time.monotonic(), 0
    end, decode = last + LIMIT_S, codecs.getincrementaldecoder("utf-8")().decode
    while time.monotonic() < end:
        waiting = entered < len(STEPS) and written.endswith(STEPS[entered].command.split()[-1])
        ready, _, _ = select.select([terminal], [], [], SILENT_S)
        if not ready and waiting:
            os.write(terminal, b"\n")
            entered, last = entered + 1, time.monotonic()
        if not ready:
            continue
        try:
            piece = decode(os.read(terminal, 65_536))
        except OSError:  # how Linux says that the other side closed
            return
        now = time.monotonic()
        shown, last, written = shown + min(now - last, WAIT_S), now, written + piece
        yield sum(READ_S[:entered]), shown, piece
    raise SystemExit(f"plas demo: expected an end within {LIMIT_S} s, got none")


def cast(events: Sequence[Event]) -> str:
    """The recording as lines of JSON: a head, then time, kind and text."""
    head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "plas demo", "env": {"TERM": "xterm-256color"}}
    return "".join(
        json.dumps(line, ensure_ascii=False) + "\n" for line in (head, *([at, "o", text] for at, text in events))
    )


def events_of(text: str) -> list[Event]:
    """Times and texts of a recording."""
    return [(at, piece) for at, kind, piece in map(json.loads, text.splitlines()[1:]) if kind == "o"]


@dataclass(frozen=True)
class Film:
    """Rows that are different, and what stands where from when: `frames` holds a time and rows' numbers, none for an empty one."""

    rows: dict[str, int]
    frames: list[tuple[float, tuple[int, ...]]]
    length_s: float


def film(events: Sequence[Event]) -> Film:
    """The screen as it changes, at most once in FRAME_S."""
    rows: dict[str, int] = {"": 0}
    frames: list[tuple[float, tuple[int, ...]]] = []
    written = ""
    for number, (at, piece) in enumerate(events):
        written += piece
        following = events[number + 1][0] if number + 1 < len(events) else at + LAST_S
        if following - (frames[-1] if frames else events[0])[0] < FRAME_S:
            continue
        found = tuple(rows.setdefault(line, len(rows)) for line in _screen(written))
        if not frames or frames[-1][1] != found:
            frames.append((at, found))
    return Film(rows, frames, events[-1][0] + LAST_S)


def _screen(written: str) -> list[str]:
    """The lines on the screen as elements, the last ones where there are more; longer ones go on in the next."""
    found: list[str] = []
    for line in standing(written)[-ROWS:]:
        text = Text.from_ansi(line)
        found += [_drawn(text[start : start + COLUMNS]) for start in range(0, max(len(text), 1), COLUMNS)]
    return found[-ROWS:]


WIDE, HIGH, MARGIN, BAR = 8.4, 18, 12, 30  # pixels: a character, a line, around, the title
STYLE = """text{font:14px "DejaVu Sans Mono",Menlo,Consolas,monospace;white-space:pre;fill:#d8dee9}
.b{font-weight:bold;fill:#fff}.d{fill:#8b949e}.t{fill:#8b949e;font-family:sans-serif}"""


def _drawn(line: Text) -> str:
    """One line as elements at their columns, each as wide as its characters are on a terminal."""
    styles = [""] * len(line)
    for span in line.spans:
        styles[span.start : span.end] = [_style(span.style)] * (min(span.end, len(line)) - span.start)
    parts, at = [], 0
    for style, run in groupby(zip(line.plain, styles, strict=True), key=lambda pair: pair[1]):
        said = "".join(character for character, _ in run)
        kept = said.strip(" ")
        begin = at + len(said) - len(said.lstrip(" "))
        if kept:
            place = f'x="{begin * WIDE:g}" textLength="{len(kept) * WIDE:g}"'
            parts.append(f"<text {place}{style}>{escape(kept, quote=False)}</text>")
        at += len(said)
    return "".join(parts)


def _style(style: str | Style) -> str:
    """The attribute that a span's style is drawn with."""
    if isinstance(style, str):
        return ""
    if style.color is not None:
        return f' style="fill:{style.color.get_truecolor(DIMMED_MONOKAI).hex}"'
    return ' class="b"' if style.bold else ' class="d"' if style.dim else ""


def picture(made: Film, still: int) -> str:
    """The film as an SVG that moves by itself and loads nothing; `still` is the frame where nothing moves."""
    height = ROWS * HIGH + 2 * MARGIN
    shown = [f'<g id="r{number}">{drawn}</g>' for drawn, number in made.rows.items() if drawn]
    frames = [
        f'<g transform="translate(0 {number * height})">'
        + "".join(f'<use href="#r{row}" y="{(i + 1) * HIGH}"/>' for i, row in enumerate(rows) if row)
        + "</g>"
        for number, (_, rows) in enumerate(made.frames)
    ]
    steps = "".join(
        f"{at / made.length_s * 100 if number else 0:.2f}%{{transform:translateY({-number * height}px)}}"
        for number, (at, _) in enumerate(made.frames)
    )
    wide, high = COLUMNS * WIDE + 2 * MARGIN, height + BAR
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}">
<title>plas demo</title>
<style>{STYLE}
#film{{transform:translateY({-still * height}px);animation:play {made.length_s:.1f}s step-end infinite}}
@media (prefers-reduced-motion:reduce){{#film{{animation:none}}}}
@keyframes play{{{steps}}}</style>
<defs><clipPath id="screen"><rect width="{COLUMNS * WIDE:g}" height="{height - MARGIN}"/></clipPath>{"".join(shown)}</defs>
<rect x=".5" y=".5" width="{wide - 1:g}" height="{high - 1:g}" rx="8" fill="#1c2128" stroke="#768390"/>
<text class="t" x="{wide / 2:g}" y="20" text-anchor="middle">plas demo</text>
<g transform="translate({MARGIN} {BAR})" clip-path="url(#screen)"><g id="film">{"".join(frames)}</g></g>
</svg>
"""


def drawn(text: str) -> str:
    """The picture of a recording; where nothing moves it stands at the search's answer, before the next step is run."""
    events = events_of(text)
    made = film(events)
    answered = next(i for i, (_, piece) in enumerate(events) if f"3 of {len(STEPS)}" in piece)
    entered = next(at for at, piece in events[answered + 1 :] if "\n" in piece)
    return picture(made, max(number for number, (at, _) in enumerate(made.frames) if at < entered))


def main(arguments: Sequence[str]) -> None:
    """Record, unless only the drawing is asked for, and draw."""
    if arguments != ["--draw"]:
        CAST.write_text(cast(recorded()), encoding="utf-8")
    PICTURE.write_text(drawn(CAST.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.stat().st_size / 1e3:.0f} kB: {PICTURE}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
