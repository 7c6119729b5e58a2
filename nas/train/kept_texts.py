"""Texts as token ids, made once on each machine and kept in its folder for temporary files, for trainings anywhere."""

import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path

from nas.errors import UsageError
from nas.export.tokenizer import Tokenizer
from nas.train.corpus import Corpus, Sources, held_in, prepared, wanted_of


def text_of(sources: Sources, tokenizer: Tokenizer) -> str:
    """A hash of all that decides the token files.

    Raises:
        UsageError: texts that cannot be read.
    """
    return hashlib.sha256(json.dumps(wanted_of(sources, tokenizer), sort_keys=True).encode()).hexdigest()


def kept(text: str, sources: Sources, tokenizer: Tokenizer) -> tuple[Path, Corpus]:
    """The folder with the token files of a hash, and what they are; made from the texts where they are not there.

    Raises:
        UsageError: the texts here are others.
        PlasError: no space left.
    """
    folder = _own_folder() / text
    if (found := held_in(folder)) is not None:
        return folder, found
    if (here := text_of(sources, tokenizer)) != text:
        raise UsageError(
            f"train.data: expected the text {text[:12]}, got {here[:12]} here; copy it, or start a new run"
        )
    folder.mkdir(exist_ok=True)
    return folder, prepared(folder, sources, tokenizer, lambda _: None)


def _own_folder() -> Path:
    """A folder that only this user can write, on this machine.

    Raises:
        UsageError: somebody else has made one of its name.
    """
    folder = Path(tempfile.gettempdir()) / f"plas-texts-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise UsageError(f"{folder}: expected a folder of one's own, got another's; set TMPDIR to a folder of yours")
    return folder
