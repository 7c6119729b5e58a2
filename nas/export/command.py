"""Runs `export`: chooses candidates, rounds them if wanted, writes them for every stack, prints."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas.answer.carried_study import write_with_study
from nas.answer.design_words import count, describe
from nas.answer.sentences import hardware
from nas.document.document import SHARED, Cell, Document, Part, Section, Table, figures
from nas.errors import UsageError
from nas.export.candidates import Chosen, chosen, with_vocabulary
from nas.export.families import family_of, order_in_words, refuse_stack
from nas.export.folder import MANIFEST, folder_names, manifest, whole_folder
from nas.export.gguf_formats import FORMATS
from nas.export.launch_list import FILE, Rounded, changes, launch_columns, to_multiple
from nas.export.model import Model, Workload, cautions_of, refuse_unserved, refuse_weights_without_head, served_as
from nas.export.readme import README, readme, recipe_line
from nas.export.recipe import Recipe, load_recipe
from nas.export.request import ExportRequest
from nas.export.stack_protocol import KIND, shown, stack, stack_names
from nas.export.tokenizer import refuse_larger, tokenizers_for
from nas.files.faults import unknown
from nas.files.tables import write, write_json
from nas.study.entry_points import refuse_contested
from nas.study.layers import parsed_settings
from nas.study.value_parsers import written_vocabulary
from nas.terminal.console import notice
from nas.terminal.doors import command
from nas.terminal.tables import show
from objectives.display_text import in_a_command
from objectives.loss_law.law import Law, origin_line, verdict_line
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray
from search_spaces.columns import OF_SERVING

EVERY_STACK = "every stack"
MOST_NAMED = 10  # refused candidates in a message
SIXTEEN = ("fp16", "bf16")  # formats of as many bits as f16


@dataclass(frozen=True, eq=False)
class Export:
    """Everything that is written, in memory."""

    chosen: Chosen
    stacks: tuple[str, ...]
    models: list[Model]
    rounded: list[Rounded | None]
    columns: dict[str, AnyArray]

    def cautions(self) -> dict[tuple[str, str], list[str]]:
        """Every caution once, by stack (or every one) and text, with the candidates that it concerns."""
        texts: dict[tuple[str, str], list[str]] = {}
        for model in self.models:
            for text in (*tokenizer_cautions(model), *cautions_of(model.served)):
                texts.setdefault((EVERY_STACK, text), []).append(model.id)
            for name in self.stacks:
                own = format_cautions(model, self.chosen.study.problem.scenario) if name == "llama_bench" else []
                for text in (*own, *stack(name).cautions(model)):
                    texts.setdefault((shown(name), text), []).append(model.id)
        return texts

    @property
    def headless(self) -> bool:
        """Whether predicted times leave out embedding and LM head, which the exported parameters count."""
        return not self.chosen.study.problem.has_head


def format_cautions(model: Model, scenario: Scenario) -> list[str]:
    """That GGUF weights are f16 where times are predicted in a format of another size."""
    predicted = scenario.of_design(model.architecture).precision.name
    if model.gguf != "f16" or predicted in SIXTEEN:
        return []
    return [f"weights are f16, not {predicted}, in which times are predicted; --gguf names another format"]


def tokenizer_cautions(model: Model) -> list[str]:
    """That the tokenizer leaves most of the vocabulary unused."""
    used, vocabulary = model.tokenizer.size, model.column("vocabulary")
    if used == vocabulary:
        return []
    return [
        f"the tokenizer in hf uses {used:,} of {vocabulary:,} ids: for training give --tokenizer FOLDER with one of that size, "
        "a smaller --vocabulary, or data of token ids"
    ]


def export(request: ExportRequest) -> None:
    """Choose, write, show.

    Raises:
        UsageError: anything asked for that cannot be done; nothing was written.
        InfeasibleError: nothing to export.
        PlasError: no space left; nothing was kept.
    """
    if request.source is None or request.out is None:
        raise UsageError(
            "export: expected a run or candidate file and --out FOLDER, got less; give both, or --verify FOLDER"
        )
    prepared = prepare(request, request.source)
    needed = sum(stack(name).size(model) for model in prepared.models for name in prepared.stacks)
    with whole_folder(request.out, needed) as folder:
        for number, model in enumerate(prepared.models, 1):
            for name in prepared.stacks:
                place = folder / model.folder / shown(name)
                place.mkdir(parents=True)
                stack(name).emit(model, place)
            if request.weights and not request.quiet:
                notice(f"{number:,} of {len(prepared.models):,} candidates written")
        write_with_study(folder / FILE, prepared.columns, prepared.chosen.study)
        cautions = prepared.cautions()
        assumptions = [text for (name, text) in cautions if name == EVERY_STACK] + _doubts(prepared)
        write(folder / README, readme(prepared.models, prepared.stacks, cautions, assumptions))
        content = manifest(prepared.chosen.study, prepared.stacks, prepared.models, _notes(prepared))
        write_json(folder / MANIFEST, content)
    if prepared.chosen.doubt and not request.quiet:
        notice(f"Warning: {prepared.chosen.doubt}")
    show(_document(request, prepared), as_json=request.json)


def prepare(request: ExportRequest, source: Path) -> Export:
    """Prepare everything but the files, so that every fault is reported before anything is written.

    Raises:
        UsageError: unknown names, an architecture that no class holds, a tokenizer that does not fit.
        InfeasibleError: nothing to export.
    """
    stacks = stack_names(request.stacks or "hf")
    for name in stacks:
        refuse_contested(KIND, name, "to: ")
        stack(name)  # an installed package's that is none is refused before anything is worked out
    if request.gguf is not None and request.gguf not in FORMATS:
        raise UsageError(f"--gguf: {unknown('a weight format', request.gguf, FORMATS)}")
    tokenizers = tokenizers_for(request.tokenizer)
    typed = {**request.flags, **parsed_settings(request.settings)}
    vocabulary = _vocabulary(typed.get("vocabulary"))
    candidates = chosen(source, request.how, request.config, request.settings, request.flags)
    designs = with_vocabulary(
        as_flags_serve(candidates.architectures, typed),
        vocabulary,
        tokenizers.size,
        candidates.study.problem.vocabulary,
    )
    tokenizers.refuse_other_sizes(designs.vocabulary.tolist())
    exported = to_multiple(designs, request.multiple) if request.multiple > 1 else designs
    scenario = candidates.study.problem.scenario
    recipe = _recipe(request, scenario.law)
    gguf = request.gguf or usual_format(scenario, stacks)
    models: list[Model] = []
    refused: list[str] = []
    for name, folder, i in zip(candidates.ids, folder_names(candidates.ids), range(len(exported)), strict=True):
        tokenizer = tokenizers.of(int(exported.vocabulary[i]))
        with _typed():
            own = scenario.of_design(exported[i : i + 1])
        workload = Workload(own.batch, own.input_tokens, own.output_tokens)
        how = (tokenizer, recipe, workload, request.weights, request.seed, gguf)
        model = Model(name, folder, exported[i : i + 1], *how, own.precision.name, served_as(own))
        refused += _impossible(model, stacks)
        models.append(model)
    if refused:
        others = [text.partition(": ")[0] for text in refused[1:]]
        names = f"{', '.join(others[:MOST_NAMED])}{' and others' * (len(others) > MOST_NAMED)}"
        more = f" ({len(others):,} more of the {len(models):,} candidates are refused: {names})" if others else ""
        raise UsageError(f"{refused[0]}{more}")
    with _typed():
        columns = launch_columns(candidates.study.problem, models)
    return Export(candidates, stacks, models, changes(candidates.study.problem, designs, exported), columns)


def _recipe(request: ExportRequest, law: Law) -> Recipe:
    """The recipe; the one that is taken where none is named trains on as many tokens as the law predicts for."""
    recipe = load_recipe(request.recipe)
    if request.recipe != ExportRequest.recipe or law.tokens is None or not law.sees_tokens:
        return recipe
    return recipe.model_copy(update={"tokens": law.tokens})


def as_flags_serve(architectures: Architectures, flags: Mapping[str, Any]) -> Architectures:
    """Designs without words of their own for what a flag says of all of them."""
    typed = [name for name in OF_SERVING if f"serving.{name}" in flags]
    if not typed:
        return architectures
    rows = [architectures[i : i + 1] for i in range(len(architectures))]
    words = [{name: 0 if name in typed else int(getattr(row, name)[0]) for name in OF_SERVING} for row in rows]
    return Architectures.concatenate([row.served(**own) for row, own in zip(rows, words, strict=True)])


@contextmanager
def _typed() -> Iterator[None]:
    """What the study or its device lacks for a design, or its curve does not count, as a fault of what was asked for."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


def _vocabulary(written: Any) -> int | None:
    """One vocabulary for all candidates, as --vocabulary has it; None: each its own.

    Raises:
        UsageError: another value, several, or none.
    """
    try:
        size = None if written is None else written_vocabulary(written)
    except ValueError as error:
        raise UsageError(f"--vocabulary: {error}") from None
    if isinstance(size, list):
        raise UsageError(
            f"--vocabulary: expected one for all candidates, got {len(size)}; leave it out for each design's own"
        )
    if size == 0:
        raise UsageError("--vocabulary: expected at least 1, got 0; a model needs an embedding")
    return size


def usual_format(scenario: Scenario, stacks: tuple[str, ...]) -> str:
    """The weight format of GGUF files where none is given: the study's own where it is one of llama.cpp's, else f16."""
    own = "" if scenario.formats else scenario.precision.name
    return own if own in FORMATS and "llama_bench" in stacks else "f16"


def _impossible(model: Model, stacks: tuple[str, ...]) -> list[str]:
    """Why a model cannot be exported to the stacks, if it cannot: the first reason."""
    try:
        family = family_of(model.architecture)
        refuse_unserved(model.served, family.model_type, family.class_name)
        for name in stacks:
            refuse_weights_without_head(model.served, name, weights=model.weights)
            refuse_stack(model.architecture, name)
            if hasattr(one := stack(name), "refuse"):
                one.refuse(model)
        refuse_larger(model.tokenizer, model.column("vocabulary"))
    except UsageError as error:
        return [f"{model.id}: {error}"]
    return []


def _notes(prepared: Export) -> dict[str, Any]:
    """Cautions, roundings and orders of layers for the manifest."""
    rounded = {m.id: r.mapping() for m, r in zip(prepared.models, prepared.rounded, strict=True) if r}
    cautions = [{"stack": s, "text": t, "candidates": ids} for (s, t), ids in prepared.cautions().items()]
    orders = {m.id: order for m in prepared.models if (order := order_in_words(m.architecture))}
    return {"rounded": rounded, "cautions": cautions} | ({"layer_order": orders} if orders else {})


def _document(request: ExportRequest, prepared: Export) -> Document:
    """What was exported and what it is predicted to do, with every doubt and caution."""
    recipe, models, study = prepared.models[0].recipe, prepared.models, prepared.chosen.study
    names = ", ".join(shown(name) for name in prepared.stacks)
    place = hardware(study.problem, study.config, study.calibration_note)
    lines = [
        f"Rounded {m.id}: {change}" for m, change in zip(models, prepared.rounded, strict=True) if change is not None
    ]
    lines += _doubts(prepared)
    for (name, text), ids in prepared.cautions().items() if not request.quiet else ():
        more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
        whom = "" if len(ids) == len(models) else f" ({', '.join(ids[:3])}{more})"
        lines.append(f"Caution, {name}{whom}: {text}")
    title = f"{len(models):,} exported to {request.out}: {names}; recipe {recipe.name}"
    parts: tuple[Part, ...] = (
        f"{recipe_line(models)}; GPU hours on {recipe.accelerator} at {100 * recipe.utilisation:g} % of its peak",
        f"Predicted by law {study.problem.scenario.law.name} for {place}; {study.config.request_words}, batch {study.config.batch}",
        _table(prepared),
        *lines,
        f"Check: {command('export')} --verify {in_a_command(request.out or '.')}",
    )
    rows = zip(*(column.tolist() for column in prepared.columns.values()), strict=True)
    candidates = [dict(zip(prepared.columns, row, strict=True)) for row in rows]
    return Document(title, (Section(title, parts),), {"candidates": candidates, **_notes(prepared)})


def _table(prepared: Export, most: int = 20) -> Table:
    c, outside = prepared.columns, _outside(prepared)
    time = "total_ms without LM head" if prepared.headless else "total_ms"
    formats = {"id": "", "loss (nats)": "", time: ".5g", "parameters": "", "active": ""}
    columns = (*figures(formats), *figures({"FLOPs": ".3g", "GPU hours": ".4g", "learning rate": ".3g"}))
    body: list[tuple[Cell, ...]] = [
        (
            model.id,
            f"{c['loss'][i]:.4f}{'*' if outside[i] else ''}",
            float(c["total_ms"][i]),
            *(count(float(c[name][i])) for name in ("params_total", "params_active")),
            *(float(c[name][i]) for name in ("training_flops", "gpu_hours")),
            model.schedule.peak,
            describe(model.architecture),
        )
        for i, model in enumerate(prepared.models[:most])
    ]
    all_in = f"{most} of {len(prepared.models):,} shown; {FILE} holds all"
    notes = (all_in,) if len(prepared.models) > most else ()
    return Table((*columns, SHARED["architecture"]), tuple(body), notes=notes)


def _outside(prepared: Export) -> list[bool]:
    """Which exported candidates lie outside the loss law's range."""
    exported = Architectures.concatenate([model.architecture for model in prepared.models])
    outside: list[bool] = prepared.chosen.study.problem.scenario.law.extrapolates(exported).tolist()
    return outside


def _doubts(prepared: Export) -> list[str]:
    """Times without the head, extrapolated losses, budgets that candidates exceed."""
    problem, lines = prepared.chosen.study.problem, []
    if prepared.headless:
        lines.append(
            "Predicted times and memory_gb leave out embedding and LM head, which the parameters count; --preset device or "
            "--vocabulary N includes them in the times"
        )
    law = problem.scenario.law
    lines += [line for line in (origin_line(law), verdict_line(law)) if line]
    if any(_outside(prepared)):
        lines.append(f"* outside the range that law {law.name} was fitted on")
    for budget in problem.budgets:
        over = int((budget.violation(prepared.columns[budget.metric]) > 0).sum())
        if over:
            lines.append(f"Over budget {budget}: {over:,} of {len(prepared.models):,}")
    return lines
