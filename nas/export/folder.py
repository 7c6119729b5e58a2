"""The folder of an export: written whole or not at all, and export.json, by which it can be checked and repeated."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nas.answer.carried_study import beside
from nas.errors import PlasError, UsageError
from nas.export.gguf_formats import FORMATS
from nas.export.launch_list import FILE
from nas.export.model import Model, Served, Workload, serving_in, written_serving
from nas.export.readme import README
from nas.export.recipe import Recipe
from nas.export.stack_protocol import installed, shown, stack_names
from nas.record.identity import section
from nas.search.assembly import Study
from nas.study.value_parsers import ALWAYS
from objectives import outside
from objectives.loss_law.law import origin_line
from objectives.plugins import DISTRIBUTION, normalised, version_of

SPARE_BYTES = 50_000_000
MANIFEST = "export.json"
LAYOUT = 1
OURS_BEFORE = "plas-stacks "  # the distribution that had stacks of ours


@contextmanager
def whole_folder(out: Path, expected_bytes: int) -> Iterator[Path]:
    """A folder to write into; it becomes `out` when the block ends, and nothing of it stays when it fails.

    Raises:
        UsageError: `out` is a file, is not empty, or cannot be made.
        PlasError: too little space before, or none left while, writing.
    """
    _refuse_used(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}.part-", dir=out.parent))
    except OSError as error:
        raise UsageError(f"out: expected a writable folder, got {out} ({error.strerror}); name another") from None
    try:
        _refuse_full(temporary, expected_bytes)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o777 & ~mask)
        yield temporary
        os.rename(temporary, out)
    except OSError as error:
        raise PlasError(
            f"{out}: cannot be written ({error.strerror}); nothing was kept, free space or name another"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _refuse_used(out: Path) -> None:
    try:
        if out.is_dir() and any(out.iterdir()):
            raise UsageError(f"out: expected a new or empty folder, got {out} with files in it; name another")
        if out.exists() and not out.is_dir():
            raise UsageError(f"out: expected a folder, got a file {out}; name another")
    except OSError as error:
        raise UsageError(f"out: expected a folder, got {out} ({error.strerror}); name another") from None


def _refuse_full(folder: Path, expected_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if expected_bytes and free < expected_bytes + SPARE_BYTES:
        raise PlasError(
            f"out: expected {expected_bytes / 1e9:.3g} GB of free space for the weights, got {free / 1e9:.3g} GB; "
            "leave out --weights, choose fewer candidates, or name another disk"
        )


def folder_names(ids: list[str]) -> list[str]:
    """A distinct folder name per id, of letters, digits, dots, underscores and hyphens."""
    names: list[str] = []
    used = {FILE, beside(Path(FILE)).name, MANIFEST, README.lower()}
    for identity in ids:
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", identity).strip(".-")[:100] or "candidate"
        name, n = base, 1
        while name.lower() in used:
            n += 1
            name = f"{base}-{n}"
        used.add(name.lower())
        names.append(name)
    return names


def manifest(study: Study, stacks: tuple[str, ...], models: list[Model], notes: dict[str, Any]) -> dict[str, Any]:
    """The content of export.json."""
    first, scenario = models[0], study.problem.scenario
    return {
        "layout": LAYOUT,
        "plas": version_of(DISTRIBUTION),
        "stacks": [shown(name) for name in stacks],
        "plugins": installed(stacks),
        "recipe": first.recipe.model_dump(mode="json"),
        "workload": _workloads([model.workload for model in models]),
        **written_serving([model.served for model in models]),
        "weights": first.weights,
        "seed": first.seed,
        "gguf": first.gguf,
        "tokenizer": ", ".join(dict.fromkeys(model.tokenizer.kind for model in models)),
        "predictions": {
            "device": ", ".join(each.device.name for each in scenario.by_device.values()),
            "precision": scenario.precision.name,
            "latency": scenario.latency,
            "calibration": study.calibration_note,
            "vocabulary": "each design's own" if study.problem.space.own_heads else study.problem.vocabulary,
            "law": scenario.law.name,
            "law_origin": origin_line(scenario.law) or None,
            "scenario": section(study.resolved(), ALWAYS.name),
        },
        **notes,
    }


def _workloads(workloads: list[Workload]) -> dict[str, int] | list[dict[str, int]]:
    """The workload of all models, or each model's own where texts are of other tokens in each."""
    plain = [asdict(workload) for workload in workloads]
    return plain[0] if len(set(workloads)) == 1 else plain


@dataclass(frozen=True)
class Written:
    """The entry of the files in export.json: our stacks, and those of installed packages with their distributions.

    workloads: each model's own, or one for all.
    """

    stacks: tuple[str, ...]
    plugins: dict[str, str]
    recipe: Recipe
    workloads: tuple[Workload, ...]
    weights: bool
    seed: int
    gguf: str
    served: tuple[Served, ...] = (Served(),)

    def of_candidates(self, folder: Path, count: int) -> list[tuple[Workload, Served]]:
        """The workload of each of so many candidates, and how it is served.

        Raises:
            UsageError: there are fewer or more.
        """
        workloads = self.workloads * count if len(self.workloads) == 1 else self.workloads
        served = self.served * count if len(self.served) == 1 else self.served
        if len(workloads) != count or len(served) != count:
            raise UsageError(
                f"{folder}: expected a workload of each of {count} candidates, got {len(workloads)}, served in {len(served)} ways; "
                "export again"
            )
        return list(zip(workloads, served, strict=True))


def read_manifest(folder: Path) -> Written:
    """The part of export.json that verification needs.

    Raises:
        UsageError: no export, one of another layout, or with stacks that this version does not have.
    """
    try:
        content = outside.json_of(folder / MANIFEST, outside.MB, own=True)
        if content["layout"] != LAYOUT:
            raise ValueError(f"layout {content['layout']}")
        recipe, given = Recipe.model_validate(content["recipe"]), content["workload"]
        workloads = tuple(Workload(**each) for each in (given if isinstance(given, list) else [given]))
        plugins = {str(name): str(of) for name, of in content.get("plugins", {}).items()}
        distributions = {name: of for name, of in plugins.items() if not of.startswith(OURS_BEFORE)}
        theirs = (normalised(name) for name in map(str, content["stacks"]) if name not in distributions)
        recorded = installed(theirs) | distributions
        stacks = tuple(name for name in content["stacks"] if name not in recorded)
        gguf = str(content.get("gguf", "f16"))  # before formats could be chosen
        if gguf not in FORMATS:
            raise ValueError(f"gguf {gguf}")
        served = serving_in(content.get("serving", {}))
        how = (recipe, workloads, bool(content["weights"]), int(content["seed"]), gguf, served)
        return Written(stack_names(",".join(stacks), f"{folder / MANIFEST}: stacks"), recorded, *how)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or " ".join(f"{type(error).__name__}: {error}".split())[:100]
        raise UsageError(
            f"{folder}: expected the folder of an export, got {MANIFEST} ({reason}); check the path"
        ) from None
