"""The run store: order, unique keys, and that nothing altered is taken for a result."""

import math
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.errors import PlasError, UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.record.database import digest
from nas.record.folder import open_run
from nas.record.store import FILE, BatchRecord, RunStore, final, read_meta
from search_spaces.specification import GENES

Filled = tuple[Path, Problem, Evaluations]
SIZES = (7, 1, 12)


def opened(path: Path, problem: Problem, *, readonly: bool = False) -> RunStore:
    """The store of a problem."""
    names = tuple(o.name for o in problem.objectives)
    return RunStore(path, problem.metric_names, names, problem.budgets, readonly=readonly)


def created(path: Path, problem: Problem) -> RunStore:
    """A new, empty store."""
    store = opened(path, problem)
    columns = problem.architectures(problem.space.genotypes(np.zeros(1, dtype=np.int64))).columns()
    store.create({"resolved": {"x": 1}}, dict.fromkeys(columns, "REAL"))
    return store


def append(store: RunStore, problem: Problem, found: Evaluations, start: int, batch: int) -> None:
    """Log rows as one batch."""
    store.append(start, BatchRecord(batch, len(found), 0.25, 0.5), found, problem.architectures(found.genotypes))


@pytest.fixture
def problem(problem_of: Callable[..., Problem], user_module: Callable[[str], str]) -> Problem:
    """A problem with a budget and a user's metric that fails where depth is 8."""
    name = user_module("import numpy as np\ndef fn(a):\n    return np.where(a.depth == 8, np.nan, a.depth / 3)\n")
    return problem_of(objectives=["loss", f"{name}:fn"], budgets={"decode_ms": 5})


@pytest.fixture
def filled(tmp_path: Path, problem: Problem) -> Filled:
    """A store of three batches whose keys come in no order."""
    keys = np.random.default_rng(5).permutation(problem.space.size)[: sum(SIZES)]
    found = problem.evaluate(problem.space.genotypes(keys))
    assert 0 < (~found.ok).sum() < len(found)
    store, start = created(tmp_path / FILE, problem), 0
    for batch, size in enumerate(SIZES):
        append(store, problem, found[slice(start, start + size)], start, batch * 2)
        start += size
    store.close()
    return tmp_path / FILE, problem, found


def changed(path: Path, statement: str, *values: Any) -> None:
    """Alter a store behind its back."""
    with sqlite3.connect(path) as connection:
        connection.execute(statement, values)
    connection.close()


def test_rows_come_back_in_order_with_equal_values(filled: Filled) -> None:
    path, problem, found = filled
    store = opened(path, problem)
    recorded = store.read()
    back = recorded.evaluations
    assert back.keys.tolist() == found.keys.tolist()
    assert (back.genotypes == found.genotypes).all()
    assert back.reasons == found.reasons
    for name, column in found.metrics.items():
        assert column.tobytes() == back.metrics[name].tobytes(), name
    assert recorded.batches.tolist() == store.batches().tolist() == [0] * 7 + [2] + [4] * 12
    assert store.seconds() == (0.75, 1.5)
    store.close()


def test_a_new_store_is_empty(tmp_path: Path, problem: Problem) -> None:
    store = created(tmp_path / FILE, problem)
    assert len(store.read().evaluations) == len(store.batches()) == 0
    assert store.seconds() == (0.0, 0.0)
    store.close()
    assert read_meta(tmp_path / FILE)["resolved"] == {"x": 1}


@pytest.mark.parametrize("value", [math.nan, -0.0, 5e-324, 1.7976931348623157e308, 0.1 + 0.2])
def test_every_float_survives(value: float, tmp_path: Path, problem: Problem) -> None:
    found = problem.evaluate(problem.space.genotypes(np.array([3])))
    found.metrics["loss"] = np.array([value])
    store = created(tmp_path / FILE, problem)
    append(store, problem, found, 0, 0)
    np.testing.assert_array_equal(store.read().evaluations.metrics["loss"], [value])
    store.close()


def test_pandas_and_sqlite_read_it_while_it_is_written(filled: Filled) -> None:
    pandas = pytest.importorskip("pandas")
    path, problem, found = filled
    writer = opened(path, problem)
    rest = problem.evaluate(problem.space.genotypes(np.setdiff1d(np.arange(30), found.keys)[:4]))
    append(writer, problem, rest, len(found), 6)
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    table = pandas.read_sql('SELECT * FROM evaluations ORDER BY "index"', reader)
    assert table["key"].tolist() == [*found.keys.tolist(), *rest.keys.tolist()]
    assert table["state"].tolist()[: len(found)] == ["ok" if ok else "failed" for ok in found.ok]
    assert table["violation_decode_ms"].tolist()[-4:] == (rest.metrics["decode_ms"] / 5 - 1).tolist()
    assert table[[f"gene_{gene}" for gene in GENES]].to_numpy()[-4:].tolist() == rest.genotypes.tolist()
    assert {"depth", "width", "n_experts", "ffn_ratio"} <= set(table.columns)
    reader.close()
    writer.close()


class Rows:
    """What a cursor gives, read in one go."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def fetchall(self) -> list[Any]:
        """Every row that is left."""
        return self.fetchmany(len(self.rows))

    def fetchone(self) -> Any:
        """The next row."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, n: int) -> list[Any]:
        """The next n rows."""
        taken, self.rows = self.rows[:n], self.rows[n:]
        return taken


class Busy:
    """A connection beside which another process appends a batch after every statement."""

    def __init__(self, connection: sqlite3.Connection, between: Callable[[], None]) -> None:
        self.connection, self.between = connection, between

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def execute(self, *arguments: Any) -> Any:
        """The rows of a statement, read before the other process goes on."""
        rows = self.connection.execute(*arguments).fetchall()
        self.between()
        return Rows(rows)


def test_a_log_is_read_whole_while_another_process_appends(filled: Filled) -> None:
    path, problem, found = filled
    writer, reader = opened(path, problem), opened(path, problem, readonly=True)
    fresh = np.setdiff1d(np.arange(problem.space.size), found.keys).tolist()

    def another() -> None:
        rows = len(writer.batches())
        append(writer, problem, problem.evaluate(problem.space.genotypes(np.array([fresh.pop()]))), rows, rows)

    reader.connection = Busy(reader.connection, another)  # type: ignore[assignment]
    back = reader.read()
    assert back.evaluations.keys[: len(found)].tolist() == found.keys.tolist()
    assert len(back.batches) == len(back.evaluations)
    assert len(writer.batches()) > len(found)
    reader.close()
    writer.close()


def test_an_architecture_cannot_be_stored_twice_and_the_batch_is_left_out_whole(filled: Filled) -> None:
    path, problem, found = filled
    store = opened(path, problem)
    fresh = np.setdiff1d(np.arange(30), found.keys)[:2]
    again = problem.evaluate(problem.space.genotypes(np.array([*fresh, found.keys[3]])))
    with pytest.raises(PlasError):
        append(store, problem, again, len(found), 6)
    assert store.read().evaluations.keys.tolist() == found.keys.tolist()
    store.close()


ALTERED = {
    "an edited metric": 'UPDATE evaluations SET loss = loss * 1.0000001 WHERE "index" = 9',
    "an edited gene": 'UPDATE evaluations SET gene_depth = 1 - (gene_depth = 1) WHERE "index" = 9',
    "a metric taken away": 'UPDATE evaluations SET loss = NULL WHERE "index" = 9',
    "a text for a metric": "UPDATE evaluations SET loss = 'low' WHERE \"index\" = 9",
    "an edited key": 'UPDATE evaluations SET key = 161 + key WHERE "index" = 9',
    "an edited batch": 'UPDATE evaluations SET batch = batch + 1 WHERE "index" = 9',
    "an edited reason": "UPDATE evaluations SET reason = 'because' WHERE \"index\" = 9",
    "a row deleted in the middle": 'DELETE FROM evaluations WHERE "index" = 9',
    "the last row deleted": 'DELETE FROM evaluations WHERE "index" = 19',
    "a batch forgotten": "DELETE FROM batches WHERE batch = 4",
    "the digest edited": "UPDATE batches SET digest = 'f00' WHERE batch = 2",
    "the table dropped": "DROP TABLE evaluations",
}


@pytest.mark.parametrize("statement", ALTERED.values(), ids=ALTERED)
def test_what_was_altered_is_refused(statement: str, filled: Filled) -> None:
    path, problem, _ = filled
    changed(path, statement)
    store = opened(path, problem)
    with pytest.raises(PlasError, match="start a new run"):
        store.read()
    store.close()


def test_the_digest_covers_every_value() -> None:
    def rows(loss: list[float], genotype: int = 1, reasons: tuple[str, ...] | None = None) -> Evaluations:
        metrics = {"loss": np.array(loss), "total_ms": np.array([3.0, 4.0])}
        return Evaluations(np.full((2, 6), genotype), np.arange(2), metrics, reasons, ("loss",), ())

    base = digest(rows([1.0, 2.0]))
    assert base == digest(rows([1.0, 2.0], reasons=("", "")))
    others = [
        rows([2.0, 1.0]),
        rows([1.0, np.nextafter(2.0, 3.0)]),
        rows([1.0, 2.0], 2),
        rows([1.0, 2.0], reasons=("", "x")),
        rows([1.0, 2.0], reasons=("x", "")),
    ]
    assert len({base, *map(digest, others)}) == 6
    quiet, payload = np.array([1.0, np.nan]), np.array([1.0, np.nan])
    payload.view(np.uint64)[1] ^= np.uint64(1)
    assert digest(rows(quiet.tolist())) == digest(rows(payload.tolist()))


def damaged(intact: bytes, generator: random.Random) -> bytes:
    """A file's content with one bit flipped."""
    content = bytearray(intact)
    content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    return bytes(content)


@pytest.mark.parametrize(
    "trials", [range(100), pytest.param(range(100, 5000), marks=pytest.mark.extended)], ids=["100", "5000"]
)
def test_a_flipped_bit_changes_no_value_that_is_read(trials: range, filled: Filled) -> None:
    path, problem, found = filled
    intact, refusals = path.read_bytes(), 0
    for trial in trials:
        path.write_bytes(damaged(intact, random.Random(trial)))
        try:
            store = opened(path, problem, readonly=True)
            back = store.read().evaluations
            store.close()
        except PlasError:
            refusals += 1
            continue
        assert (back.genotypes == found.genotypes).all(), trial
        assert (back.keys == found.keys).all(), trial
        for name, column in found.metrics.items():
            assert column.tobytes() == back.metrics[name].tobytes(), (trial, name)
    assert refusals, "no flip was noticed"


@pytest.mark.parametrize(
    "content", [b"", b"SQLite format 3\0", b"not a database at all" * 100, None], ids=["empty", "header", "text", "cut"]
)
def test_a_foreign_file_is_one_clear_line(content: bytes | None, filled: Filled) -> None:
    path, _, _ = filled
    path.write_bytes(path.read_bytes()[:5000] if content is None else content)
    with pytest.raises(PlasError) as caught:
        open_run(path.parent)
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_that_cannot_be_written_is_read(filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> None:
    path, problem, found = filled
    folder = tmp_path_factory.mktemp("copy") / "run"
    shutil.copytree(path.parent, folder)
    for part in (folder / FILE, folder):
        part.chmod(0o555 if part.is_dir() else 0o444)
    try:
        store = opened(folder / FILE, problem, readonly=True)
        assert store.read().evaluations.keys.tolist() == found.keys.tolist()
        store.close()
        assert [
            p.name for p in folder.iterdir() if p.suffix != ".py" and p.name != "__pycache__" and "-" not in p.name
        ] == [FILE]
    finally:
        folder.chmod(0o755)


def test_a_missing_folder_is_a_usage_error(tmp_path: Path, problem: Problem) -> None:
    with pytest.raises(UsageError, match="expected a writable folder"):
        opened(tmp_path / "none" / FILE, problem)


def test_a_locked_store_is_a_usage_error(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    path, problem, found = filled
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    store = opened(path, problem)
    store.connection.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(UsageError, match="in use"):
        append(
            store,
            problem,
            problem.evaluate(problem.space.genotypes(np.setdiff1d(np.arange(30), found.keys)[:1])),
            len(found),
            9,
        )
    other.close()
    store.close()


def test_a_store_is_written_ahead_and_synchronised(filled: Filled) -> None:
    """After a power cut it holds whole batches: write-ahead log, synchronous NORMAL (1); OFF (0) may damage the file."""
    path, problem, _ = filled
    store = opened(path, problem)
    assert store.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store.connection.execute("PRAGMA synchronous").fetchone() == (1,)
    store.close()


def test_what_is_read_back_has_the_types_that_were_written(filled: Filled) -> None:
    path, problem, found = filled
    store = opened(path, problem)
    recorded = store.read()
    assert recorded.evaluations.keys.dtype == found.keys.dtype
    assert recorded.batches.dtype == np.int64
    store.close()


def test_a_store_is_laid_out_whole_or_not_at_all(tmp_path: Path, problem: Problem) -> None:
    store = opened(tmp_path / FILE, problem)
    with pytest.raises((PlasError, TypeError)):
        store.create({"unwritable": object()}, {})
    assert store.connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() == (0,)
    store.close()


def test_a_retried_row_that_was_never_evaluated_is_refused(filled: Filled) -> None:
    path, problem, found = filled
    store = opened(path, problem)
    places = ", ".join("?" * (3 + len(problem.metric_names)))
    with store.connection:
        row = (len(found), "", "0", *[1.0] * len(problem.metric_names))
        store.connection.execute(f"INSERT INTO retried VALUES ({places})", row)
    with pytest.raises(PlasError, match=f"a retried row {len(found)} was never evaluated"):
        store.read()
    store.close()


@pytest.mark.parametrize("damaged", [0, 1])
def test_any_retried_row_that_is_not_what_was_written_is_refused(filled: Filled, damaged: int) -> None:
    path, problem, found = filled
    store = opened(path, problem)
    rows = np.array([1, 3])
    store.retry(rows, found[rows])
    assert store.read().retried[0].tolist() == [1, 3]
    with store.connection:
        store.connection.execute('UPDATE retried SET loss = loss + 1 WHERE "index" = ?', (int(rows[damaged]),))
    with pytest.raises(PlasError, match=f"retried row {rows[damaged]} is not what was written"):
        store.read()
    store.close()


def test_a_retried_value_takes_the_place_of_the_failed_one(filled: Filled) -> None:
    _, _, found = filled
    failed = np.flatnonzero(~found.ok)[:2]
    others = found[np.flatnonzero(found.ok)[: len(failed)]]
    now = final(found, (failed, others))
    for name in found.metrics:
        np.testing.assert_array_equal(now.metrics[name][failed], others.metrics[name], err_msg=name)
    assert now.ok[failed].all()
    rest = np.setdiff1d(np.arange(len(found)), failed)
    reasons = found.reasons or ()
    assert [(now.reasons or ("",) * len(found))[row] for row in rest] == [reasons[row] for row in rest]
    assert final(found, (failed[:0], found[:0])) is found
