"""A command as it is typed, in this process."""

import pytest


def typed(command, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("sys.argv", ["plas command", *arguments])
    with pytest.raises(SystemExit) as ended:
        command()
    return int(ended.value.code or 0)
