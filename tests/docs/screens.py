"""Pictures of the terminal: the commands on screens of 80 and 120 columns, in colour and plain, as docs/images/screen-*.svg.

python -m tests.docs.screens            # from the root of a checkout; it takes a minute
"""

import io
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI
from rich.text import Text

from tests.nas.terminal.screens import CLEAR, on_screen, standing

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
RUN = ("run", "--algo", "nsga2")
FOLDER = "runs/paper-nsga2-s0"
SHOTS: dict[str, tuple[Sequence[str], int]] = {
    "run-80": ((*RUN, "--resume", FOLDER), 80),
    "run-120": ((*RUN, "--resume", FOLDER), 120),
    "select-80": (("select", FOLDER, "--budget", "total_ms=100", "--rows", "8"), 80),
    "explain-80": (("explain", FOLDER, "--select", "knee"), 80),
    "help-80": (("run", "--help"), 80),
}
PLAIN = ("run-80",)
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture(name: str, lines: Sequence[str], columns: int, title: str, *, plain: bool) -> None:
    """Write one screen as an SVG that needs nothing from the network."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=True)
    theme = DEFAULT_TERMINAL_THEME if plain else DIMMED_MONOKAI
    drawn = console.export_svg(title=title, theme=theme, code_format=SVG, unique_id=name)
    IMAGES.joinpath(f"screen-{name}.svg").write_text(drawn, encoding="utf-8")


def main() -> None:
    """Draw every picture."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        first = on_screen(RUN, folder, 80)
        live = first.written.split(CLEAR)  # the head, then every state of the line
        searching = [*standing(live[0]), *standing(live[len(live) // 3])]
        picture("live-80", searching, 80, f"python -m nas.{' '.join(RUN)}", plain=False)
        for name, (command, columns) in SHOTS.items():
            typed = RUN if "--resume" in command else command
            for plain in (False, True) if name in PLAIN else (False,):
                screen = on_screen(command, folder, columns, **({"NO_COLOR": "1"} if plain else {}))
                shown = f"{name}-plain" if plain else name
                title = f"{'NO_COLOR=1 ' if plain else ''}python -m nas.{' '.join(typed)}"
                picture(shown, standing(screen.written), columns, title, plain=plain)
    sys.stdout.write(f"{len(list(IMAGES.glob('screen-*.svg')))} pictures in {IMAGES}\n")


if __name__ == "__main__":
    main()
