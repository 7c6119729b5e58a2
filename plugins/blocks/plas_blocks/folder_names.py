"""What the folder of an answer is known by; nothing heavy is imported."""

from os.path import isfile, join
from pathlib import Path

TABLE, CONFIG = "library.csv", "config.yaml"


def recognises(folder: Path) -> bool:
    """Return True if a folder holds an answer of `blocks`, by the names of its files alone."""
    return all(isfile(join(folder, name)) for name in (CONFIG, TABLE))  # unlike Path.is_file of any name
