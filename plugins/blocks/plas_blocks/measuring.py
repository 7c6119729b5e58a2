"""The work of `blocks --measure`: a library of a model's own blocks, each scored in the parent's place, and the test of their sum."""

import json
from pathlib import Path

import numpy as np

from nas.errors import UsageError
from nas.export.hf_config import refuse_missing
from nas.files.tables import refuse_used
from nas.record import folder as run_folder
from nas.record.jsonl_log import Record
from nas.terminal.console import Ticker, say, say_json
from nas.terminal.doors import command
from objectives.display_text import in_a_command
from plas_blocks import session
from plas_blocks.additivity import Additivity, write_additivity
from plas_blocks.checking import Meaning, checked
from plas_blocks.files import write_library
from plas_blocks.library import Library, Row
from plas_blocks.request import BlocksRequest, refuse_mixed
from plas_blocks.session import Reading, Scorer
from plas_blocks.variants import Variant

SCORE = "loss"


def measure(request: BlocksRequest) -> None:
    """Score every replacement and the mixtures, write the library.

    Raises:
        UsageError: no model or text, a folder in use, a measurement of something else.
        PlasError: a loss that is not finite, a folder that cannot be written.
    """
    refuse_mixed(request)
    refuse_missing("blocks")
    reading = reading_of(request)
    if request.out is None and request.resume:
        raise UsageError("--resume: expected the folder of the measurement, got none; name it with --out")
    if request.out is not None and not request.resume:
        refuse_used("--out", request.out)
    found = session.scorer(request.library, reading)
    folder = request.out if request.resume and request.out else run_folder.create("blocks-library", request.out)
    with run_folder.locked(folder):
        asked = {"mixtures": request.mixtures, "seed": request.seed}
        record = session.record_of(folder, session.identity(found, reading, asked))
        mixtures = session.sampled(found.shapes, request.mixtures, request.seed)
        try:
            losses = _scored(record, found, [*session.replacements(found.shapes), *mixtures], quiet=request.quiet)
        except KeyboardInterrupt:
            again = f"the same command with --resume --out {in_a_command(folder)} goes on"
            raise KeyboardInterrupt(f"Interrupted, every score is kept; {again}") from None
        library = library_of(request.library, found, losses)
        write_library(folder, library)
        additivity = additivity_of(found, losses, mixtures)
        if additivity is not None:
            write_additivity(folder, additivity, [session.key(mixture) for mixture in mixtures])
    _say(request, folder, library, additivity)


def reading_of(request: BlocksRequest) -> Reading:
    """The text and how it is cut.

    Raises:
        UsageError: no text.
    """
    if request.text is None:
        raise UsageError("--text: expected a text to score blocks on, got none; name a file or a folder")
    return Reading(request.text, request.tokens, request.length, request.batch)


def _scored(record: Record, found: Scorer, todo: list[dict[int, Variant]], *, quiet: bool) -> dict[str, float]:
    """The loss of each, those of the record first."""
    losses = {line["scored"]: line["loss"] for line in record.lines}
    left = [chosen for chosen in todo if session.key(chosen) not in losses]
    ticker = Ticker(len(todo), quiet=quiet, start=len(todo) - len(left))
    for number, chosen in enumerate(left, len(todo) - len(left) + 1):
        loss = losses[session.key(chosen)] = found.loss(chosen)
        record.add({"scored": session.key(chosen), "loss": loss})
        ticker(number, lambda loss=loss: f"loss {loss:.4f}")  # type: ignore[misc]
    ticker.close()
    return losses


def library_of(model: Path, found: Scorer, losses: dict[str, float]) -> Library:
    """The library: the whole model's loss with one layer replaced, and the costs of that layer's block."""
    rows = []
    for at, shape in enumerate(found.shapes):
        for variant in shape.variants():
            own = variant == shape.parent
            loss = losses["parent" if own else session.key({at: variant})]
            config = variant.config()
            rows.append(
                Row(
                    f"layer {at}",
                    (at,),
                    variant.name,
                    own,
                    {SCORE: loss, **shape.costs(variant)},
                    json.dumps(config, sort_keys=True),
                    {"block_config": config},
                )
            )
    weights = sum(p.numel() for p in found.model.parameters())
    inside = sum(shape.costs(shape.parent)["num_params"] for shape in found.shapes)
    size = found.shapes[0].bytes_per_weight
    rest = {"num_params": float(weights - inside), "memory_mib": (weights - inside) * size / 2**20}
    return checked(str(model), rows, Meaning((SCORE,), (), rest))


def additivity_of(found: Scorer, losses: dict[str, float], mixtures: list[dict[int, Variant]]) -> Additivity | None:
    """Predicted and real losses of the mixtures; None without any."""
    if not mixtures:
        return None
    own = losses["parent"]
    predicted = [own + sum(losses[session.key({at: v})] - own for at, v in m.items()) for m in mixtures]
    real = [losses[session.key(m)] for m in mixtures]
    return Additivity(np.array([len(m) for m in mixtures]), np.array(predicted), np.array(real))


def _say(request: BlocksRequest, folder: Path, library: Library, additivity: Additivity | None) -> None:
    own = library.baselines[SCORE]
    if request.json:
        report = None if additivity is None else additivity.content()
        say_json({"folder": str(folder), "replacements": len(library), "parent_loss": own, "additivity": report})
    elif not request.quiet:
        say(f"{len(library):,} blocks of {library.layers} layers scored; the parent's loss is {own:.4f}.")
        if additivity is not None:
            say(additivity.sentence(SCORE))
        say(f"Next: {command('blocks')} {in_a_command(folder)} --objective loss,memory_mib")
