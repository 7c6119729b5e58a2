"""The tour that `demo` shows and the README describes: a sentence and a command, six times; a test holds the two together."""

from dataclasses import dataclass

BOARD_FILE = "board.yaml"
BOARD = """\
name: Our board
fp16: 6 TFLOP/s       # dense peaks: half of those for sparse matrices
int8: 12 TOP/s
bandwidth: 51.2 GB/s
memory: 8 GB
chip: npu             # or gpu, server_gpu, soc, cpu: its speed until measured
"""
SHOW, OPEN = f"cat {BOARD_FILE}", "plas open "


@dataclass(frozen=True)
class Step:
    """A sentence that says what comes, and the command as it is typed."""

    says: str
    command: str


STEPS = (
    Step("Describe the device: six lines of its datasheet.", SHOW),
    Step(
        "Search: the design of the lowest predicted loss within 500 ms and 4 GB.",
        f"plas run --algo nsga2 --preset device --device {BOARD_FILE} --precision int8 "
        "--budget total_ms=500 --budget resident_gb=4 --out runs/mine",
    ),
    Step("See why: where its time, bytes and loss go, and what a step buys.", "plas explain runs/mine --select best"),
    Step(
        "Choose: five designs that differ most, in a table.",
        "plas select runs/mine --select diverse:5 --out candidates.csv",
    ),
    Step(
        "Export: the best one as files for training.",
        "plas export runs/mine --select best --to hf,megatron --out trained",
    ),
    Step("Look: the page of the run, with sliders for the budgets.", f"{OPEN}runs/mine"),
)
