"""The rooms of `nas` on their floors, as the import contracts of pyproject.toml state them: docs/images/rooms.png.

python benchmarks/rooms.py
"""

import ast
import textwrap
import tomllib
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
CHARACTERS = {"nas": 140, "objectives": 90}  # that a floor is wide
CONTAINERS = {"nas": "HOW WE SEARCH", "objectives": "WHAT IT COSTS"}


def floors(container: str) -> list[list[str]]:
    """Rooms floor by floor, the highest first; doors of commands stand on one."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c.get("containers") == [container])
    return [[name.strip() for name in layer.split("|")] for layer in layers]


def purpose(container: str, room: str) -> str:
    """First docstring line of a room, up to its colon or comma."""
    path = ROOT / container / room
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    line = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
    return line.partition(":")[0].rstrip(".") if len(line) > 62 else line.rstrip(".")


def draw(path: Path) -> None:
    """One column of floors per package; what stands higher may import what stands lower, never the reverse."""
    figure, axes = plt.subplots(1, len(CONTAINERS), figsize=(15, 13), width_ratios=[3, 2])
    for ax, (container, title) in zip(axes, CONTAINERS.items(), strict=True):
        rows = floors(container)
        for height, rooms in enumerate(reversed(rows)):
            doors = len(rooms) > 6 and not any((ROOT / container / room).is_dir() for room in rooms)
            shown = ["doors: one file per command, with flags, help and exit code"] if doors else rooms
            for i, room in enumerate(shown):
                width = 1 / len(shown)
                box = plt.Rectangle(
                    (i * width + 0.005, height + 0.06), width - 0.01, 0.88, facecolor="#eef3f8", edgecolor="#33658a"
                )
                ax.add_patch(box)
                ax.text((i + 0.5) * width, height + 0.68, room, ha="center", va="center", fontsize=9, weight="bold")
                text = ", ".join(rooms) if doors else purpose(container, room)
                wide = CHARACTERS[container] // len(shown)
                lines = textwrap.fill(text, wide, max_lines=3 if len(shown) > 6 else 2, placeholder=" …")
                ax.text((i + 0.5) * width, height + 0.3, lines, ha="center", va="center", fontsize=6)
        ax.set(xlim=(0, 1), ylim=(0, len(rows)), title=f"{container}/   {title}")
        ax.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    draw(ROOT / "docs" / "images" / "rooms.png")
