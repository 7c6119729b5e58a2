"""A search whose loss is a training: a dask cluster on this machine, the driver killed once, resumed, and its frontier.

python -m studies.headline.trained_search [--out FOLDER] [--evaluations 32] [--workers 2] [--killed-after 12] [--docs]

Every evaluation trains one design on text that every machine has. --docs writes the table and the picture of studies/headline/trained-search.md.
"""

import argparse
import json
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from distributed import LocalCluster

from nas.files.yaml_source import dump

HERE = Path(__file__).resolve().parent
IMAGES = HERE.parents[1] / "docs" / "images"
SHAPE = ["depth", "width", "n_kv_heads", "expert_ffn_ratio"]
COLUMNS = ["train", "total_ms", "loss", "params_total", *SHAPE]
LOOK_S = 0.5
STUDY: dict[str, Any] = {
    "name": "trained",
    "space": {
        "name": "miniature",
        "head_dim": 16,
        "axes": {
            "depth": [1, 2, 3, 4, 6],
            "width": [32, 48, 64, 96, 128],
            "expert_ffn_ratio": [0.5, 1, 2, 4],
            "n_kv_heads": [1, 2],
        },
    },
    "vocabulary": 257,
    "objectives": ["train", "total_ms"],
    "train": {"data": "stdlib", "tokens": 100_000, "validation_tokens": 16_384, "last_steps": 1},
    "default_budget": "none",
    "applications": {},
    "baselines": [],
    "algo": "prior_guided",
    "params": {"batch": 4},
}


def arrived(folder: Path) -> int:
    """Losses that the run's store holds, those of designs under way included."""
    store = folder / "evaluations.sqlite"
    if not store.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=5)) as opened:
            tables = {name for (name,) in opened.execute("SELECT name FROM sqlite_master")}
            counted = [name for name in ("evaluations", "arrived") if name in tables]
            return sum(opened.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in counted)
    except sqlite3.OperationalError:  # it is being laid out
        return 0


def started(*arguments: object) -> "subprocess.Popen[bytes]":
    """`plas run` in a process of its own."""
    line = [sys.executable, "-m", "nas.run", *map(str, arguments)]
    print("$ plas run", *arguments, flush=True)
    return subprocess.Popen(line)


def searched(folder: Path, address: str, evaluations: int, killed_after: int) -> dict[str, Any]:
    """The search, killed once so many losses are there, and resumed; what happened when."""
    run, begin = folder / "run", time.monotonic()
    where = ("--set", f"executor=dask:{address}")
    driver = started("--config", folder / "study.yaml", "--evaluations", evaluations, *where, "--out", run)
    while driver.poll() is None and arrived(run) < killed_after:
        time.sleep(LOOK_S)
    if driver.poll() is not None:
        raise SystemExit(f"the run ended with {driver.returncode} before it could be killed")
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    kept, seconds = arrived(run), time.monotonic() - begin
    print(f"killed after {seconds:.0f} s with {kept} losses in its store", flush=True)
    code = started("--resume", run, *where).wait()
    if code:
        raise SystemExit(f"the resumed run ended with {code}")
    whole = time.monotonic() - begin
    return {
        "kept_when_killed": kept,
        "killed_after_s": round(seconds),
        "seconds": round(whole),
        "arrived": arrived(run),
    }


def drawn(table: pd.DataFrame, kept: int, path: Path) -> None:
    """Trained loss over latency: every design, before and after the kill, and the frontier."""
    figure, ax = plt.subplots(figsize=(7, 4.4))
    good = table[table["state"] == "ok"]
    for name, rows, colour in (
        ("before the kill", good[good["index"] < kept], "#33658a"),
        ("after --resume", good[good["index"] >= kept], "#f26419"),
    ):
        ax.scatter(rows["total_ms"], rows["train"], s=22, color=colour, label=f"{name}: {len(rows)} trainings")
    front = good[good["frontier"]].sort_values("total_ms")
    ax.step(front["total_ms"], front["train"], where="post", color="#444444", linewidth=1, label="frontier")
    ax.set(xscale="log", xlabel="total_ms, analytic (log scale)", ylabel="train: validation loss, nats per byte")
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


def evaluations_of(run: Path) -> pd.DataFrame:
    """`evaluations.csv` with a column that tells the frontier."""
    table = pd.read_csv(run / "evaluations.csv")
    front = pd.read_csv(run / "frontier.csv")
    members = set(front[SHAPE].itertuples(index=False, name=None))
    table["frontier"] = [shape in members for shape in table[SHAPE].itertuples(index=False, name=None)]
    return table


def written(run: Path, kept: int, table_file: Path, picture: Path) -> None:
    """The table of every training and the picture, and on the screen the frontier."""
    table = evaluations_of(run)
    front = table[table["frontier"]].sort_values("total_ms")
    table[["index", "state", "frontier", *COLUMNS]].to_csv(table_file, index=False, float_format="%.6g")
    drawn(table, kept, picture)
    print(f"{(table['state'] == 'ok').sum()} trainings, {len(front)} on the frontier")
    print(front[COLUMNS].to_string(index=False, float_format=lambda value: f"{value:.4g}"))


def main() -> None:
    """Start the cluster, search, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--evaluations", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--killed-after", type=int, default=12)
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    folder = asked.out or Path(tempfile.mkdtemp(prefix="trained-search-"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(dump(STUDY))
    with LocalCluster(
        n_workers=asked.workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        told = searched(folder, cluster.scheduler_address, asked.evaluations, asked.killed_after)
    print(json.dumps(told))
    table = (HERE if asked.docs else folder) / "trained-search.csv"
    picture = (IMAGES if asked.docs else folder) / "trained-search.png"
    written(folder / "run", told["kept_when_killed"], table, picture)


if __name__ == "__main__":
    main()
