"""The headline on one GPU: shapes that two laws pick at a baseline's predicted time and memory, trained beside it.

    python -m studies.headline_gpu design                      the lists again, and whether they are the committed ones
    python -m studies.headline_gpu run --out FOLDER --data FOLDER --seconds 540      trains piece by piece; again, to go on
    python -m studies.headline_gpu judge FOLDER                what the trainings say, as lines of Markdown

`run` keeps each finished training as a line of FOLDER/results.jsonl and begins none that is predicted not to end in time, so that every session on a
GPU adds whole trainings: take the file along and name the same folder. `--data` is where token ids are made, anew on each machine. `--miniature --device cpu` runs every
piece with tiny shapes and texts, in minutes. Rules and predictions are in studies/headline_gpu/design.md.
"""

import argparse
from pathlib import Path

from studies.headline_gpu.design import design
from studies.headline_gpu.judging import judge
from studies.headline_gpu.running import run


def main() -> None:
    """Carry out what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stages = parser.add_subparsers(dest="stage", required=True)
    stages.add_parser("design")
    running = stages.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--data", type=Path, required=True)
    running.add_argument("--seconds", type=float, required=True, help="after which nothing new begins or ends")
    running.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    running.add_argument("--miniature", action="store_true", help="tiny shapes and texts")
    stages.add_parser("judge").add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.stage == "design":
        design()
    elif given.stage == "run":
        run(given)
    else:
        judge(given.folder)


if __name__ == "__main__":
    main()
