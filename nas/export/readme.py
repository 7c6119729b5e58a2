"""README.md of an export: what lies where, how each stack is started, and what to know before."""

from collections.abc import Mapping, Sequence

from nas.answer.design_words import describe, tokens_in_words
from nas.export.families import family_of, order_in_words
from nas.export.launch_list import FILE
from nas.export.model import Model
from nas.export.recipe import training_tokens
from nas.export.stack_protocol import RECIPES_PAGE, shown, stack
from search_spaces.architectures import Architectures

README = "README.md"
TRAINER = "trainer"


def readme(
    models: Sequence[Model],
    stacks: Sequence[str],
    cautions: Mapping[tuple[str, str], list[str]],
    assumptions: Sequence[str],
) -> str:
    """The page as Markdown.

    Args:
        models: exported candidates.
        stacks: their names.
        cautions: by stack and text, the candidates that they concern.
        assumptions: what the predictions of the launch list leave out or exceed.
    """
    first = models[0]
    lines = [
        *_contents(models, assumptions),
        *_training(stacks),
        "## How to start",
        "",
        f"In a candidate's folder (here `{first.folder}`), the one that holds `hf`; `GPUS` is their number. {recipe_line([first])}.",
        "",
    ]
    for name in stacks:
        lines += [*_stack(name, models, cautions), ""]
    if {"vllm", "llama_bench"} & set(stacks):
        lines += ["When benches have run: `plas calibrate . --device DEVICE` from this folder reads their results.", ""]
    return "\n".join(lines)


def _contents(models: Sequence[Model], assumptions: Sequence[str]) -> list[str]:
    """What each folder holds, and in which order layers of several kinds stand, which columns only count."""
    orders = [
        f"- `{m.folder}`, {family_of(m.architecture).class_name}: {order}."
        for m in models
        if (order := order_in_words(m.architecture))
    ]
    return [
        "# Exported candidates",
        "",
        f"`{FILE}` lists them with predictions, parameters and training cost; `export.json` holds the recipe and what the",
        "predictions assume. Check the files with `plas export --verify .`.",
        "",
        *(f"- {text}" for text in assumptions),
        "",
        "| folder | candidate | architecture |",
        "|---|---|---|",
        *(
            f"| `{m.folder}` | {_cell(m.id)} | {describe(m.architecture)}, vocabulary {m.column('vocabulary'):,}{', ' * bool(m.served.in_words())}{m.served.in_words()} |"
            for m in models
        ),
        "",
        *([*orders, ""] if orders else []),
    ]


def _training(stacks: Sequence[str]) -> list[str]:
    """With which command a large run starts, and what trains the same candidates in small."""
    own = f"with the command of **{TRAINER}** below"
    none = f"with `{TRAINER}`, which is not in this export: `plas export {FILE} --to {TRAINER} --out FOLDER` adds it"
    return [
        "## To train",
        "",
        f"- A large run: {own if TRAINER in stacks else none}.",
        f"- With Megatron-LM, torchtitan or LLaMA-Factory, from `hf`: {RECIPES_PAGE} of PLAS.",
        f"- A validation run on one machine: `plas train {FILE} --data TEXT --tokens N` in this folder trains all of them on the same data",
        "  in the same order and writes the table that `plas fit` reads. It is not made for large runs.",
        "",
    ]


def _stack(name: str, models: Sequence[Model], cautions: Mapping[tuple[str, str], list[str]]) -> list[str]:
    """A stack's commands for the first candidate, then what to mind, naming candidates where it is not all of them."""
    first, every = models[0], {model.id for model in models}
    lines = [f"**{shown(name)}**", "", "```bash", f"cd {first.folder}", stack(name).launch(first), "```"]
    sentences = [(text, ids) for (whose, text), ids in cautions.items() if whose == shown(name)]
    lines += [""] * bool(sentences)
    for text, ids in sentences:
        lines.append(f"- {text}" + ("" if set(ids) == every else f" ({', '.join(map(_cell, ids))})"))
    return lines


def recipe_line(models: Sequence[Model]) -> str:
    """The recipe of some models in a line, with their tokens."""
    recipe = models[0].recipe
    rate, exported = recipe.learning_rate, Architectures.concatenate([model.architecture for model in models])
    return (
        f"{tokens_in_words(training_tokens(exported, recipe).tolist())} in batches of {recipe.global_batch} x {recipe.sequence_length:,}, AdamW {recipe.beta1:g}/{recipe.beta2:g}, "
        f"decay {recipe.weight_decay:g}, learning rate {rate.peak:g} to {rate.final:g} by width^{rate.width_exponent:g} depth^{rate.depth_exponent:g}"
    )


def _cell(text: str) -> str:
    """A candidate's name inside a table or a line."""
    return text.replace("|", "\\|").replace("\n", " ").replace("`", "'")
