"""Tests of what only an extra brings, skipped by name where it is not installed; .ci/run installs it and runs them."""

from importlib.util import find_spec

import pytest


def skip_without_hf(items: list[pytest.Item], named: str) -> None:
    """Skip the files with this in their name where torch or transformers is missing."""
    if find_spec("transformers") is None or find_spec("torch") is None:
        for item in items:
            if named in item.path.name:
                item.add_marker(pytest.mark.skip(reason="needs the extra hf, which is not installed"))
