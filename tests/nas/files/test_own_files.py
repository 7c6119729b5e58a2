"""Pictures that cannot be written leave a sentence that says what is kept, never a traceback."""

import errno
import os
from pathlib import Path

import pytest

from nas.errors import PlasError
from nas.files.own_files import drawing


@pytest.mark.parametrize(("kept", "said"), [((), "all results are kept"), (("tables",), "all tables are kept")])
def test_pictures_that_cannot_be_written_say_what_is_kept(kept: tuple[str, ...], said: str) -> None:
    def full(plots: Path) -> None:
        assert plots == Path("run/plots")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(PlasError) as told, drawing(Path("run"), *kept) as plots:
        full(plots)
    assert str(told.value) == f"run/plots: pictures cannot be written (No space left on device); {said}"
