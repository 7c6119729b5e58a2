"""A trained check of what a vocabulary costs: two bodies, three vocabularies and four seeds at equal text.

    python -m studies.vocabulary.trainings --out FOLDER [--docs]

Text is Python's own standard library; losses come from `plas train`. Started again, it goes on where it stopped.
--docs writes studies/vocabulary/vocabulary-trainings.csv. Plan and rules: studies/vocabulary/design.md.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from nas.export.documents import STDLIB, documents, key
from nas.export.tokenizer import END, encoder_of, tokenizer_for
from nas.study.study_laws import cost_of_vocabularies

TABLE = Path(__file__).with_name("vocabulary-trainings.csv")
SIZES = (1024, 4096, 16_384)
BESIDE = 16_384
BODIES = {"small": (2, 64), "large": (4, 128)}  # depth and width; FFNs of three times the width
SEEDS = (0, 1, 2, 3)
STEPS, BATCH, SEQUENCE_BYTES = 500, 4, 512
HELD_BYTES, TRAINED_BYTES = 200_000, 1_040_000
FIGURES = ["measured", "low", "high", "predicted", "predicted_low", "predicted_high"]
COLUMNS = ("id", "depth", "width", "vocabulary", "seed", "status", "loss", "bits_per_byte", "tokens", "steps", "epochs")


def plas(command: str, *arguments: object) -> None:
    """A command of this project, in a process of its own on one core; ends this program where it fails."""
    print("$ plas", command, *arguments, flush=True)
    one = {**os.environ, "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    if code := subprocess.run([sys.executable, "-m", f"nas.{command}", *map(str, arguments)], env=one).returncode:
        raise SystemExit(f"plas {command} ended with {code}")


def split(folder: Path) -> dict[str, Path]:
    """The text in three folders: held out, trained on, and everything but what is held out, for tokenizers."""
    places = {name: folder / name for name in ("held_out", "trained", "tokenized")}
    if all(place.is_dir() for place in places.values()):
        return places
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    taken = 0
    for digest, content in sorted({key(each): each[1] for each in documents(STDLIB)}.items()):
        parts = ["held_out"] if taken < HELD_BYTES else ["tokenized"]
        parts += ["trained"] if HELD_BYTES <= taken < HELD_BYTES + TRAINED_BYTES else []
        for part in parts:
            (places[part] / f"{digest.hex()}.py").write_bytes(content)
        taken += len(content)
    return places


def save_tokenizers(text: Path, folder: Path) -> None:
    """A byte-level BPE of each size in a folder of its own, by the recipe of docs/vocabulary.md on whole documents.

    The record's came from a command that is gone: it trained on nine documents of ten, and took the smaller ones as beginnings of the largest.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    contents = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(text.iterdir())]
    for size in SIZES:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=2,
            special_tokens=[END],
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        tokenizer.train_from_iterator(contents, trainer)
        (folder / str(size)).mkdir(parents=True)
        tokenizer.save(str(folder / str(size) / "tokenizer.json"))
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "pad_token": END}
        (folder / str(size) / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


def sequence_length(tokenizer: Path, text: Path) -> int:
    """Tokens of a sequence that holds 512 bytes of a text."""
    encoder = encoder_of(tokenizer_for(str(tokenizer)))
    contents = [path.read_bytes() for path in sorted(text.iterdir())]
    tokens = sum(len(encoder.ids(content, "text")) + 1 for content in contents)
    return round(SEQUENCE_BYTES * tokens / sum(map(len, contents)))


def candidates(path: Path) -> Path:
    """The bodies as a candidate file."""
    rows = [
        {"id": name, "depth": depth, "width": width, "head_dim": 32, "n_kv_heads": 1, "expert_size": 3 * width}
        for name, (depth, width) in BODIES.items()
    ]
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def trained(folder: Path, texts: dict[str, Path]) -> pd.DataFrame:
    """Every training, as `plas train` tables it."""
    tokenizers, bodies = folder / "tokenizers", candidates(folder / "bodies.csv")
    if not tokenizers.is_dir():
        save_tokenizers(texts["tokenized"], tokenizers)
    tables = []
    for size in SIZES:
        length = sequence_length(tokenizers / str(size), texts["trained"])
        text = ("--data", texts["trained"], "--eval", texts["held_out"], "--eval-tokens", 10**7)
        lengths = ("--tokens", STEPS * BATCH * length, "--sequence-length", length, "--batch", BATCH)
        seeds = ("--seeds", ",".join(map(str, SEEDS)), "--last-steps", 1, "--threads", 1)
        out = folder / f"trained-{size}"
        plas("train", bodies, "--tokenizer", tokenizers / str(size), *text, *lengths, *seeds, "--resume", "--out", out)
        tables.append(pd.read_csv(out / "trainings.csv"))
    return pd.concat(tables, ignore_index=True)[list(COLUMNS)]


def comparisons(table: pd.DataFrame) -> pd.DataFrame:
    """Bits per byte with a smaller vocabulary beside 16,384, per cent, with 95 % intervals, and what the shipped cost says with 90 %.

    Deviations are pooled over the cells of one body and vocabulary, in logarithms.
    """
    logs, (sd, freedom) = logarithms(table), deviation(table)
    means, counts, rows = logs.mean(), logs.size(), []
    for body in BODIES:
        for size in SIZES[:-1]:
            a, b = (body, size), (body, BESIDE)
            half = stats.t.ppf(0.975, freedom) * sd * math.sqrt(1 / counts[a] + 1 / counts[b])
            middle = means[a] - means[b]
            measured = [100 * math.expm1(middle + shift) for shift in (0, -half, half)]
            rows.append((body, size, *measured, *predicted(size)))
    found = pd.DataFrame(rows, columns=["body", "vocabulary", *FIGURES])
    verdicts = [judged(*row) for row in found[FIGURES].itertuples(index=False, name=None)]
    found["sign"], found["size"] = zip(*verdicts, strict=True)
    return found


def deviation(table: pd.DataFrame) -> tuple[float, int]:
    """The deviation between seeds of ln(bits per byte), pooled over bodies and vocabularies, and its degrees of freedom."""
    logs = logarithms(table)
    freedom = int((logs.size() - 1).sum())
    return math.sqrt(((logs.size() - 1) * logs.var().fillna(0)).sum() / freedom), freedom


def logarithms(table: pd.DataFrame) -> Any:
    """ln(bits per byte) of trainings that ended, by body and vocabulary."""
    good = table[table["status"] == "ok"]
    return np.log(good["bits_per_byte"]).groupby([good["id"], good["vocabulary"]])


def predicted(size: int) -> list[float]:
    """What the shipped cost says of a vocabulary beside 16,384, per cent, and its 90 % interval."""
    cost, ones = cost_of_vocabularies(BESIDE), np.ones(1)
    draws = cost.drawn(np.ones((len(cost.draws), 1)), np.array([size]))[:, 0]
    factors = [float(cost.priced(ones, size)[0]), *np.quantile(draws, [0.05, 0.95])]
    return [100 * (factor - 1) for factor in factors]


def judged(
    measured: float, low: float, high: float, predicted: float, predicted_low: float, predicted_high: float
) -> tuple[str, str]:
    """The rules: whether the interval has the predicted sign alone, and whether it meets the predicted one."""
    sign = "not told" if low <= 0 <= high else "as predicted" if (measured > 0) == (predicted > 0) else "opposite"
    meets = low <= predicted_high and high >= predicted_low
    return sign, "within" if meets else "larger" if low > predicted_high else "smaller"


def verdict(found: pd.DataFrame) -> str:
    """What all comparisons together say."""
    if (found["sign"] == "opposite").any() or ((found["sign"] == "as predicted") & (found["size"] != "within")).any():
        return "disagrees"
    return "agrees" if (found["sign"] == "as predicted").all() else "not decided"


def page(table: pd.DataFrame) -> list[str]:
    """The figures of studies/vocabulary/results.md, lines of Markdown."""
    means = np.exp(logarithms(table).mean())
    lines = [
        "| body | vocabulary | bits per byte | beside 16,384, % | 95 % | predicted | 90 % | sign | size |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    found = comparisons(table)
    for row in found.itertuples():
        measured = f"{row.measured:+.1f} | {row.low:+.1f} to {row.high:+.1f}"
        shipped = f"{row.predicted:+.1f} | {row.predicted_low:+.1f} to {row.predicted_high:+.1f}"
        cells = f"{means[row.body, row.vocabulary]:.4f} | {measured} | {shipped} | {row.sign} | {row.size}"
        lines.append(f"| {bodies(row.body)} | {row.vocabulary:,} | {cells} |")
    lines += [f"| {bodies(name)} | 16,384 | {means[name, BESIDE]:.4f} | | | | | | |" for name in BODIES]
    sd, freedom = deviation(table)
    ended = f"{(table['status'] == 'ok').sum()} of {len(table)} trainings"
    return [
        *lines,
        f"{ended}; deviation between seeds {100 * sd:.2f} %, {freedom} degrees of freedom. By the rules: {verdict(found)}.",
    ]


def bodies(name: str) -> str:
    """A body by its shape."""
    return "{} × {}".format(*BODIES[name])


def main() -> None:
    """Train, compare, judge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    table = trained(given.out, split(given.out))
    table.to_csv(TABLE if given.docs else given.out / TABLE.name, index=False, float_format="%.8g")
    print(*page(table), sep="\n")


if __name__ == "__main__":
    main()
