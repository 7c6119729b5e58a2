"""Training data prepared once for all candidates: token ids in files, a validation set held out, everything by its hash."""

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import PlasError, UsageError
from nas.export.documents import Document, documents_of, held_out, key, units_of
from nas.export.tokenizer import Tokenizer, encoder_of
from nas.files.own_files import inner_folder, refuse_links, replacing
from nas.files.tables import write_json
from objectives import outside
from search_spaces.arrays import AnyArray

DATA, DESCRIPTION = "data", "data.json"
ENCODED_AT_ONCE = 2**24  # bytes of documents that are encoded together
HELD_OUT = 0.05  # share of the bytes that is held out where no --eval is given


@dataclass(frozen=True)
class TokenFile:
    """Token ids in a file of the folder `data`: how many, of how many bytes of text, and their hash."""

    name: str
    dtype: str
    tokens: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Corpus:
    """Texts to train on, held-out texts, and further texts by name."""

    train: TokenFile
    validation: TokenFile
    texts: Mapping[str, TokenFile]


@dataclass(frozen=True)
class Sources:
    """Paths as given: data, validation (empty: a share of the data), further texts, and tokens to validate on at most."""

    data: Sequence[str]
    evaluation: Sequence[str]
    texts: Mapping[str, str]
    evaluation_tokens: int


def prepared(folder: Path, sources: Sources, tokenizer: Tokenizer, say: Callable[[str], None]) -> Corpus:
    """The token files below a folder: those that are there if they come from the same texts, else new ones.

    Raises:
        UsageError: texts that cannot be used.
        PlasError: no space left.
    """
    writer = _Writer(tokenizer)
    say("reading the texts")
    wanted = wanted_of(sources, tokenizer)
    try:
        place = inner_folder(folder, DATA)
        corpus = _whole_corpus(place, wanted)
        if corpus is None:
            say("writing token ids")
            corpus = _written(place, sources, writer)
            write_json(place / DESCRIPTION, {**wanted, **asdict(corpus)})
    except OSError as error:
        raise PlasError(f"{folder / DATA}: cannot be written ({error.strerror}); free or change the folder") from None
    return corpus


def wanted_of(sources: Sources, tokenizer: Tokenizer) -> dict[str, Any]:
    """The identity of the token files: hashes of texts and tokenizer, and how much is validated on."""
    return {
        "sources": _digest(sources),
        "tokenizer": tokenizer_digest(tokenizer),
        "evaluation_tokens": sources.evaluation_tokens,
    }


def held_in(folder: Path) -> Corpus | None:
    """The token files below a folder, whatever they were made of; None where they are not there or not whole."""
    return _whole_corpus(folder / DATA, {})


def tokenizer_digest(tokenizer: Tokenizer) -> str:
    """The identity of a tokenizer."""
    return hashlib.sha256(tokenizer.files["tokenizer.json"]).hexdigest()


def _digest(sources: Sources) -> str:
    """A hash of every document of every text, with its purpose."""
    digest = hashlib.sha256()
    texts = {f"--text {name}": [path] for name, path in sources.texts.items()}
    for flag, paths in {"--data": sources.data, "--eval": sources.evaluation, **texts}.items():
        digest.update(f"{flag}\n".encode())
        for _, content in documents_of(paths, flag):
            digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def _whole_corpus(place: Path, wanted: Mapping[str, Any]) -> Corpus | None:
    """The token files that are there, where they are whole and made of the same texts."""
    refuse_links(place / DESCRIPTION)
    try:
        content = outside.json_of(place / DESCRIPTION, outside.MB, own=True)
        if any(content[name] != value for name, value in wanted.items()):
            return None
        texts = {name: TokenFile(**text) for name, text in content["texts"].items()}
        corpus = Corpus(TokenFile(**content["train"]), TokenFile(**content["validation"]), texts)
        files = [corpus.train, corpus.validation, *texts.values()]
        return corpus if all(_whole(place, file) for file in files) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _whole(place: Path, described: TokenFile) -> bool:
    path = place / Path(described.name).name
    refuse_links(path)
    with outside.opened(path, own=True) as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == described.sha256


def _written(place: Path, sources: Sources, writer: "_Writer") -> Corpus:
    most = sources.evaluation_tokens
    if sources.evaluation:
        train = writer.write(place / "train.bin", documents_of(sources.data, "--data"))
        validation = writer.write(place / "validation.bin", documents_of(sources.evaluation, "--eval"), most)
    else:
        held = held_out(units_of(sources.data, "--data"), HELD_OUT)
        train = writer.write(place / "train.bin", (d for d in units_of(sources.data, "--data") if key(d) not in held))
        rest = (d for d in units_of(sources.data, "--data") if key(d) in held)
        validation = writer.write(place / "validation.bin", rest, most)
    texts = {
        name: writer.write(place / f"text-{name}.bin", documents_of([path], f"--text {name}"))
        for name, path in sources.texts.items()
    }
    return Corpus(train, validation, texts)


class _Writer:
    """Documents as a file of token ids, an end token after each."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.encoder, self.end = encoder_of(tokenizer), tokenizer.eos
        self.dtype = np.dtype("<u2" if tokenizer.size <= 65_536 else "<u4")

    def write(self, path: Path, units: Iterable[Document], most: int | None = None) -> TokenFile:
        """Every document, or the beginning of them that has `most` tokens.

        Raises:
            UsageError: a document that the tokenizer cannot read.
            OSError: no space left.
        """
        refuse_links(path)
        tokens = size = 0
        digest = hashlib.sha256()
        with replacing(path) as file:
            for ids, covered in self._encoded(units) if most is None else self._first(units, most):
                raw = np.append(ids.astype(self.dtype), self.dtype.type(self.end)).tobytes()
                file.write(raw)
                digest.update(raw)
                tokens, size = tokens + len(ids) + 1, size + covered
        return TokenFile(path.name, self.dtype.str, tokens, size, digest.hexdigest())

    def _encoded(self, units: Iterable[Document]) -> Iterator[tuple[AnyArray, int]]:
        """Ids and bytes of every document, many encoded at once."""
        batch, size = list[Document](), 0
        for unit in units:
            batch.append(unit)
            size += len(unit[1])
            if size >= ENCODED_AT_ONCE:
                yield from self.encoder.several(batch)
                batch, size = [], 0
        yield from self.encoder.several(batch)

    def _first(self, units: Iterable[Document], most: int) -> Iterator[tuple[AnyArray, int]]:
        """Ids and bytes of the first documents, the last cut off, until there are so many tokens with those of ends."""
        for name, content in units:
            if most <= 0:
                return
            ids, covered = self.encoder.head(content, name, most)
            most -= len(ids) + 1
            yield ids, covered


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
    if (corpus := held_in(folder)) is not None:
        return folder, corpus
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
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise UsageError(f"{folder}: expected a folder of one's own, got another's; set TMPDIR to a folder of yours")
    return folder
