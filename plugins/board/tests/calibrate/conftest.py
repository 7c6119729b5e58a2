"""Samples of every format, written by hand from the formats' sources, and rows as `calibrate` gets them."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plas_board.calibrate.figure import document
from plas_board.calibrate.log import Log, Wanted, read_logs, reader_of
from plas_board.calibrate.models import given_models

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="session")
def sample() -> Callable[[str], Path]:
    """A sample's path."""
    return lambda name: SAMPLES / name


@pytest.fixture(scope="session")
def log() -> Callable[..., Log]:
    """Files as a log."""

    def read(*paths: Path, models: tuple[str, ...] = (), **wanted: str) -> Log:
        documents = [document(path) for path in paths]
        readers = [(each, reader) for each in documents if (reader := reader_of(each)) is not None]
        assert len(readers) == len(documents)
        return read_logs(readers, Wanted(given_models(models), **wanted))

    return read


@pytest.fixture(scope="session")
def rows(log: Callable[..., Log]) -> Callable[..., list[dict[str, str]]]:
    """Files as rows of a measured CSV."""
    return lambda *paths, **wanted: list(csv.DictReader(log(*paths, **wanted).lines))


@pytest.fixture(scope="session")
def brief() -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """What a row measures, or why it is left out."""

    def said(row: dict[str, Any]) -> tuple[Any, ...]:
        if row.get("left_out"):
            return (row["left_out"],)
        value = float(f"{float(row['value']):.6g}")
        return (
            row["model"],
            row["metric"],
            value,
            int(row["batch"]),
            int(row["prompt_len"]),
            int(row["gen_len"]),
            row["precision"],
        )

    return said
