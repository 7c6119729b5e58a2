"""The shapes of the study, each with the roles that it has, and what is predicted of them: drawn before any training.

python -m studies.headline_gpu design    draws them again and says whether they are the committed ones
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import yaml

from nas.files.tables import csv_text
from nas.problem.problem import Problem
from nas.record.candidates import read_candidates
from nas.search.assembly import assemble
from nas.study.layers import layered
from plas_fit.next_designs import candidates_of
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray
from search_spaces.columns import SHAPE
from studies.gpu_table.lists import hold

HERE = Path(__file__).resolve().parent
STUDY, BASELINES, SHAPES, ROLES, PREDICTIONS = (
    HERE / name for name in ("study.yaml", "baselines.csv", "shapes.csv", "roles.csv", "predictions.csv")
)
SPEEDS = HERE / "boards.yaml"
BOARDS = ("jetson_orin_nano_super_8gb", "raspberry_pi_5")
LAWS = ("evidence", "hw_codesign")
TOKENS = 100e6  # of every training; hw_codesign does not see them
LEAST, MOST = 12e6, 40e6  # parameters of a body, stored
USUAL = (2.5, 3.0)  # FFN sizes in widths of the control
LIMITED = ("total_ms", "memory_gb")  # of which a pick has at most what its baseline has


def problem_of(board: str, law: str) -> Problem:
    """The study on a board, with the speeds kept in `boards.yaml`, under the law as it was then."""
    speeds = yaml.safe_load(SPEEDS.read_text(encoding="utf-8"))[board]
    own = {"law": str(HERE / f"{law}.yaml"), **({"tokens": TOKENS} if law == LAWS[0] else {})}
    flags = {"device": board, "calibration": speeds, **own}
    return assemble(*layered(flags, [], str(STUDY))).problem


def assessed(board: str, law: str, architectures: Architectures) -> dict[str, FloatArray]:
    """What the study predicts, each (n,): loss, total_ms, memory_gb and params_total among others."""
    problem = problem_of(board, law)
    values = problem.assess(problem.headed(architectures))
    return {name: np.asarray(values[name]) for name in ("loss", *LIMITED, "params_total")}


def body(architectures: Architectures, values: Mapping[str, FloatArray]) -> FloatArray:
    """Stored parameters without the one tied embedding, (n,)."""
    return values["params_total"] - 257.0 * architectures.width


def kinds(architectures: Architectures) -> dict[str, BoolArray]:
    """Which designs a kind of pick may have, each (n,)."""
    dense = architectures.n_experts == 1
    ratio = architectures.expert_size / architectures.width
    return {"dense": dense, "experts": ~dense, "control": dense & (ratio >= USUAL[0]) & (ratio <= USUAL[1])}


def picks() -> Iterator[tuple[dict[str, str], tuple[int, ...]]]:
    """Each role with the shape of the lowest predicted loss within its baseline's time and memory."""
    references, names = read_candidates(BASELINES)
    every = candidates_of(problem_of(BOARDS[0], LAWS[0]).space, np.random.default_rng(0))
    allowed = kinds(every)
    for board in BOARDS:
        for law in LAWS:
            values, limits = assessed(board, law, every), assessed(board, law, references)
            sized = (body(every, values) >= LEAST) & (body(every, values) <= MOST)
            for row, baseline in enumerate(names):
                within = sized & np.all([values[name] <= limits[name][row] for name in LIMITED], axis=0)
                for kind, mask in allowed.items():
                    fitting = np.flatnonzero(within & mask)
                    if len(fitting) and (kind != "control" or law == LAWS[0]):
                        best = int(fitting[np.argmin(values["loss"][fitting])])
                        role = {"baseline": baseline, "board": board, "law": law, "kind": kind}
                        yield role, tuple(int(getattr(every, name)[best]) for name in SHAPE)


def drawn() -> dict[Path, str]:
    """The three lists as text; the same for the same versions."""
    references, names = read_candidates(BASELINES)
    ids = {tuple(int(getattr(references, c)[i]) for c in SHAPE): name for i, name in enumerate(names)}
    roles = []
    for role, shape in picks():
        ids.setdefault(shape, f"p-{len(ids) - len(names):02}")
        roles.append({**role, "id": ids[shape]})
    columns = {name: np.array([shape[i] for shape in ids]) for i, name in enumerate(SHAPE)}
    shapes = csv_text({"id": np.array(list(ids.values()), dtype=object), **columns})
    listed = {name: np.array([role[name] for role in roles], dtype=object) for name in roles[0]}
    return {SHAPES: shapes, ROLES: csv_text(listed), PREDICTIONS: predictions(columns, list(ids.values()))}


def predictions(columns: Mapping[str, np.ndarray], ids: list[str]) -> str:
    """Of every shape the loss under each law, and time and memory on each board."""
    architectures = Architectures.from_columns(columns)
    found: dict[str, np.ndarray] = {"id": np.array(ids, dtype=object)}
    for law in LAWS:
        found[f"loss_{law}"] = np.round(assessed(BOARDS[0], law, architectures)["loss"], 5)
    for board in BOARDS:
        values = assessed(board, LAWS[0], architectures)
        found |= {f"{name}_{board}": np.round(values[name], 5) for name in LIMITED}
    found["body"] = body(architectures, values).astype(np.int64)
    return csv_text(found)


def design() -> None:
    """Write the lists that are not there, and refuse to go on where those that are differ."""
    hold(drawn())
