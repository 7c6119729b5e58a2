"""llama.cpp measured and predicted on this machine's processors: one command, stage by stage, each of which goes on where it stopped.

python -m studies.llama_cpp all --programs FOLDER --out FOLDER
python -m studies.llama_cpp STAGE --out FOLDER    design, files, machine, measure or page
python -m studies.llama_cpp figures               the page's figures again from studies/llama_cpp/llama-cpp.csv, without measuring

The design is in studies/llama_cpp/design.md; `studies/llama_cpp/build.py` builds the programs. `machine` needs the extra hf.
`machine` and `measure` take times: run them on an idle machine; they refuse to begin on another, unless --rehearse is given.
`measure` ends after --minutes and says so; the same command goes on.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from studies.llama_cpp.design import design
from studies.llama_cpp.measuring import Plan, files, machine, measure
from studies.llama_cpp.page import refresh_page, write_page


def main() -> None:
    """Carry out what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", help="all, one of the stages, or figures")
    parser.add_argument("--out", type=Path, default=Path("runs/llama-cpp"))
    parser.add_argument("--programs", type=Path, default=Path("llama-cpp/build/bin"), help="folder of llama-bench")
    parser.add_argument("--minutes", type=float, default=25.0, help="of one piece of measuring")
    parser.add_argument(
        "--rehearse",
        default="",
        metavar="ID,ID",
        help="these models and the shortest prompts alone, once, on a busy machine too; no page of record",
    )
    given = parser.parse_args()
    if given.stage == "figures":
        refresh_page()
        return
    plan = Plan(
        given.out.resolve(), given.programs.resolve(), given.minutes, tuple(filter(None, given.rehearse.split(",")))
    )
    plan.root.mkdir(parents=True, exist_ok=True)
    stages: Mapping[str, Callable[[], None]] = {
        "design": design,
        "files": partial(files, plan),
        "machine": partial(machine, plan),
        "measure": partial(measure, plan),
        "page": partial(write_page, plan),
    }
    if given.stage not in ("all", *stages):
        parser.error(f"stage: expected all, figures, {', '.join(stages)}, got {given.stage!r}")
    if given.stage in ("all", "measure") and not (plan.programs / "llama-bench").exists():
        sys.exit(
            f"--programs: expected a folder with llama-bench, got {plan.programs}; studies/llama_cpp/build.py builds it"
        )
    for stage in stages if given.stage == "all" else [given.stage]:
        stages[stage]()


if __name__ == "__main__":
    main()
