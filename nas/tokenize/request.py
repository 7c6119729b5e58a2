"""The flags of `tokenize`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import OUTPUT, Flag, Json, Quiet, Word


@dataclass(frozen=True)
class TokenizeRequest:
    """A request to count: texts, sizes of vocabulary, tokenizers that exist, what to write."""

    texts: Annotated[
        tuple[str, ...],
        Word("Text: file, .jsonl with a text in each line, folder, pattern in quotes, saved data set."),
    ]
    vocabularies: Annotated[
        str | None,
        Flag(
            "--vocabularies",
            "Sizes to train, 8k is 8,000; left out: 4k,8k,16k,32k,64k, beside --tokenizer none.",
            metavar="V,V…",
            show_default=False,
        ),
    ] = None
    tokenizers: Annotated[
        tuple[str, ...],
        Flag("--tokenizer", "Count this one too: a tokenizer.json, or a folder with one; repeats.", metavar="PATH"),
    ] = ()
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "Write the curve, .yaml: of the trained sizes, without any of the given tokenizers.",
            OUTPUT,
            show_default=False,
        ),
    ] = None
    save: Annotated[
        Path | None,
        Flag(
            "--save-tokenizers",
            "Folder for the trained ones, V/tokenizer.json each, as export --tokenizer reads them.",
            OUTPUT,
            "FOLDER",
            show_default=False,
        ),
    ] = None
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
