"""The paper's headline in miniature, with real training: one command, stage by stage, each of which continues where it stopped.

python -m studies.headline all --out FOLDER
python -m studies.headline STAGE --out FOLDER    design, train, fit, measure, search, head-to-head or page

The design is in studies/headline/design.md. `train` and `head-to-head` need the extra hf; `measure`, `search` and
`head-to-head` take times: run them on an idle machine.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

from studies.headline.design import design
from studies.headline.files import Folder, plas, write_rows
from studies.headline.fitting import STUDY, chosen_form, forms_of, of_parts
from studies.headline.page import write_page
from studies.headline.search import final_times, measure, search
from studies.headline.training import LAW_ROWS, head_to_head, table, train

PIECE_S = 1500  # seconds of one piece of training, after which checkpoints are written


def fit(folder: Folder) -> None:
    """The rows of the law, every form, the chosen one as a law, and the law of size alone."""
    data, reports = folder / "law_rows.csv", folder.made("fits")
    write_rows(data, of_parts(table(folder), *LAW_ROWS))
    found = forms_of(data, reports)
    write_rows(folder / "forms.csv", [{name: str(value) for name, value in asdict(form).items()} for form in found])
    for form, law in ((chosen_form(found).asked, "law"), ("parameters_power", "size_law")):
        if not (folder / f"{law}.yaml").exists():
            files = ["--out", folder / f"{law}.yaml", "--report", folder / f"{law}_report"]
            plas("fit", data, "--form", form, "--config", STUDY, *files, "--quiet", output=folder / f"{law}.txt")


def contest(folder: Folder, seconds: int) -> None:
    """Baseline and picks trained and measured."""
    head_to_head(folder, seconds)
    final_times(folder)


def main() -> None:
    """Carry out what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", help="all, or one of the stages")
    parser.add_argument("--out", type=Path, default=Path("runs/headline"))
    parser.add_argument("--seconds", type=int, default=PIECE_S, help="of one piece of training")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    folder = Folder(given.out.resolve())
    stages: Mapping[str, Callable[[], None]] = {
        "design": design,
        "train": partial(train, folder, given.seconds),
        "fit": partial(fit, folder),
        "measure": partial(measure, folder),
        "search": partial(search, folder),
        "head-to-head": partial(contest, folder, given.seconds),
        "page": partial(write_page, folder),
    }
    if given.stage not in ("all", *stages):
        parser.error(f"stage: expected all, {', '.join(stages)}, got {given.stage!r}")
    for stage in stages if given.stage == "all" else [given.stage]:
        stages[stage]()


if __name__ == "__main__":
    main()
