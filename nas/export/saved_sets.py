"""Data sets that Hugging Face's `datasets` saved on disk (Arrow), and Parquet files: their rows of text."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from objectives import outside

COLUMN = "text"
ENDINGS = (".arrow", ".parquet")
STATE, SPLITS = "state.json", "dataset_dict.json"
MOST_BYTES = 1_000_000 * outside.MB
PART = "train"  # of a data set that is saved in parts


def is_saved_set(path: Path) -> bool:
    """Whether a path is a saved data set: an Arrow or Parquet file, or a folder with one or with its description."""
    if path.is_file():
        return path.suffix in ENDINGS
    return path.is_dir() and (
        (path / SPLITS).is_file() or (path / STATE).is_file() or any(p.suffix in ENDINGS for p in path.iterdir())
    )


def rows_of(path: Path, flag: str) -> Iterator[tuple[str, bytes]]:
    """The rows of the column `text`, in order.

    Raises:
        UsageError: pyarrow is missing, no such column, rows in another order than the files'.
    """
    if find_spec("pyarrow") is None:
        raise UsageError(f"{flag}: expected pyarrow to read {path}, got none; pip install pyarrow, or give text files")
    for file in _files(path, flag):
        number = 0
        for batch in _batches(file):
            if COLUMN not in batch.schema.names:
                names = ", ".join(batch.schema.names)
                raise UsageError(
                    f"{flag}: expected a column {COLUMN} in {file}, got {names}; save the data set with one"
                )
            for text in batch.column(COLUMN).to_pylist():
                number += 1
                if text:
                    yield f"{file.name}:{number}", str(text).encode()


def _files(path: Path, flag: str) -> list[Path]:
    """The files of a data set in order; of one that is saved in parts, those of its training part."""
    if path.is_file():
        return [path]
    if (path / SPLITS).is_file():
        if not (path / PART).is_dir():
            raise UsageError(f"{flag}: expected a part {PART} in {path}, got none; name the folder of a part")
        path = path / PART
    if not (path / STATE).is_file():
        return sorted(p for p in path.iterdir() if p.suffix in ENDINGS)
    try:
        state = outside.json_of(path / STATE, outside.MB)
        names = [Path(entry["filename"]).name for entry in state["_data_files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{flag}: expected a saved data set in {path}, got a garbled {STATE} ({error}); save it again"
        ) from None
    if state.get("_indices_data_files"):
        raise UsageError(
            f"{flag}: expected rows in their files' order in {path}, got indices; flatten_indices() before saving"
        )
    return [path / name for name in names]


def _batches(file: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    try:
        outside.checked(file, MOST_BYTES)
        if file.suffix == ".parquet":
            yield from pyarrow.parquet.ParquetFile(file).iter_batches()
            return
        with pa.memory_map(str(file)) as source:
            try:
                yield from pyarrow.ipc.open_stream(source)
            except pa.ArrowInvalid:
                source.seek(0)
                reader = pyarrow.ipc.open_file(source)
                yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    except pa.ArrowException as error:
        raise UsageError(
            f"{file}: expected an Arrow or Parquet file, got {str(error).splitlines()[0]}; save it again"
        ) from None
