"""The commands on terminals: no line wider than the screen, one screen for a run, colours only where they may be."""

import math
import re
from pathlib import Path

import pytest

from nas.terminal.screen_text import cells
from tests.nas.terminal.screens import Screen, on_screen

RUN = "runs/paper-nsga2-s0"
SEARCH = ("run", "--algo", "nsga2", "--evaluations", "400")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of the default study."""
    made = tmp_path_factory.mktemp("screens")
    assert on_screen((*SEARCH, "--quiet", "--no-plots"), made, 80).code == 0
    return made


@pytest.fixture(scope="module", params=[80, pytest.param(120, marks=pytest.mark.slow)])
def bare(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Screen]:
    """The default study searched on a screen of 40 lines."""
    return request.param, on_screen(SEARCH, tmp_path_factory.mktemp("bare"), request.param)


def widest(screen: Screen) -> int:
    """Columns of the widest line."""
    return max(cells(line) for line in screen.lines)


@pytest.mark.slow
def test_the_bare_command_is_one_screen(bare: tuple[int, Screen]) -> None:
    columns, screen = bare
    assert screen.code == 0, screen.written
    assert len(screen.lines) < 40, screen.lines  # one line is the prompt's
    assert widest(screen) <= columns, screen.lines


def test_the_answer_stands_before_the_picture_and_holds_what_must_not_be_missed(bare: tuple[int, Screen]) -> None:
    said = "\n".join(bare[1].lines)
    order = [
        "The paper's study: ",
        "Law hw_codesign: wrongly favours experts at equal memory",
        "Best design: ",
        "Predicted loss ",
        "Takes total time ",
        "On the real device total time is about ",
        "As fast as Qwen2.5-0.5B",
        "By published trainings: ",
        "loss (nats) over total_ms (log)",
        "of the exact frontier's ",
        "Files: ",
        "Next: ",
    ]
    places = [said.index(part) for part in order]
    assert places == sorted(places)


def test_a_screen_with_room_has_the_frontier_as_a_plot_and_no_more_lines_than_fit(tmp_path: Path) -> None:
    screen = on_screen((*SEARCH, "--no-plots"), tmp_path, 80, rows=50)
    said = "\n".join(screen.lines)
    assert said.index("Best design") < said.index("loss (nats) over total_ms (log)") < said.index("Found ")
    assert len(screen.lines) < 50, screen.lines


def test_what_happens_is_shown_while_it_happens(bare: tuple[int, Screen]) -> None:
    written = bare[1].written
    head, rewritten, answer = (written.index(part) for part in ("paper's study", "\x1b[2K", "Best design"))
    assert head < rewritten < answer
    for stage in ("Exact frontier, to compare with …", "Pictures and page …"):
        assert head < written.index(stage) < answer


def test_a_small_screen_holds_the_design_its_loss_and_what_it_takes(tmp_path: Path) -> None:
    screen = on_screen((*SEARCH, "--no-plots"), tmp_path, 80, rows=24)
    on_it = screen.lines[-23:]
    first = next(line for line in on_it if line.startswith("Best design: "))
    assert re.match(r"Best design: \d+ layers, width [\d,]+, \d+ experts of which (one is|\d+ are) used", first), on_it
    assert any(re.match(r"  Predicted loss \d\.\d\d nats", line) for line in on_it), on_it
    assert any(re.match(r"  Takes total time [\d,]+ ms, memory [\d.]+ of 64 GB", line) for line in on_it), on_it


@pytest.mark.slow
def test_the_live_line_names_frontier_and_best_pick(tmp_path: Path) -> None:
    screen = on_screen(("run", "--algo", "nsga2", "--evaluations", "4000"), tmp_path, 200)
    assert re.search(
        r"[\d,]+ of 4,000, [\d,]+/s, \S+ \w+ left, frontier \d+, best loss \d\.\d{4}: \d+ layers, width [\d,]+",
        screen.written,
    )


@pytest.mark.parametrize("columns", [80, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "command",
    [
        "select {run} --budget total_ms=50",
        pytest.param("select {run} --select diverse:5", marks=pytest.mark.slow),
        pytest.param("select {run} --sweep total_ms=20:100:20", marks=pytest.mark.slow),
        "explain {run} --select knee",
        pytest.param(
            "explain --model qwen1.5_moe_a2.7b --device jetson_orin_nano_super_8gb --preset device",
            marks=pytest.mark.slow,
        ),
        pytest.param("theory --budget decode_ms=20 --budget memory_gb=64", marks=pytest.mark.slow),
        "list",
        pytest.param("run --resume {run} --verbose", marks=pytest.mark.slow),
        "select {run} --budget total_ms=0.1",
        "run --device nothing",
    ],
)
def test_no_line_is_wider_than_the_screen(command: str, columns: int, folder: Path) -> None:
    screen = on_screen(command.format(run=RUN).split(), folder, columns)
    assert screen.code in (0, 2, 3), screen.written
    assert widest(screen) <= columns, [line for line in screen.lines if cells(line) > columns]
    assert "Traceback" not in screen.written


@pytest.mark.parametrize("columns", [80, 120])
def test_help_is_grouped_with_defaults_and_examples(columns: int, tmp_path: Path) -> None:
    screen = on_screen(("run", "--help"), tmp_path, columns)
    said = "\n".join(screen.lines)
    for part in ("How to search", "What to search", "On what", "Output", "default nsga2", "Examples:", "plas run --"):
        assert part in said, part
    assert widest(screen) <= columns


@pytest.mark.slow
def test_colours_and_links_are_on_a_terminal_alone(folder: Path) -> None:
    command = ("run", "--resume", RUN)
    coloured = on_screen(command, folder, 100)
    assert "\x1b[1m" in coloured.written
    assert "\x1b]8;id=" in coloured.written
    assert (folder / RUN).resolve().as_uri() in coloured.written
    for variable in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = on_screen(command, folder, 100, **variable)
        assert plain.lines[-5:] == coloured.lines[-5:]
        assert not re.search(r"\x1b\[[\d;]*m|\x1b\]8", plain.written)
    assert "\x1b" not in plain.written


@pytest.mark.slow
def test_ascii_is_enough(folder: Path) -> None:
    screen = on_screen(("run", "--resume", RUN, "--verbose"), folder, 80, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert screen.written.isascii()
    assert widest(screen) <= 80
    said = "\n".join(screen.lines)
    assert "# Qwen2.5-0.5B" in said
    assert ". frontier" in said


@pytest.mark.slow
def test_a_fit_longer_than_the_screen_ends_with_its_verdict(tmp_path: Path) -> None:
    depths, widths = (4, 8, 12, 16), (512, 768, 1024)
    rows = [
        f"{d},{w},4,1,1,{4 * w},{4 - 0.3 * math.log(d) - 0.2 * math.log(w / 512):.4f}" for d in depths for w in widths
    ]
    (tmp_path / "runs.csv").write_text("\n".join(["depth,width,n_kv_heads,n_experts,top_k,expert_size,loss", *rows]))
    flags = ("--form", "depth_width", "--bootstraps", "0", "--starts", "1")
    low, high = (on_screen(("fit", "runs.csv", *flags), tmp_path, 80, rows=lines) for lines in (24, 900))
    first = low.lines[low.lines.index("Verdict") + 1].strip()
    assert first.startswith("depth_width fits 12 rows")
    assert f"Verdict, its reasons at the top: {first}" in " ".join("\n".join(low.lines[-8:]).split())
    assert "its reasons at the top" not in "\n".join(high.lines)
