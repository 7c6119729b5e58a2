"""Which laws a study asks, and for how many training tokens."""

from collections.abc import Sequence

from nas.errors import UsageError
from nas.study.configuration import StudyConfig
from objectives.loss_law.law import Law


def asked_laws(config: StudyConfig, law: Law, rivals: Sequence[Law]) -> tuple[Law, ...]:
    """The study's law and the others, each once: the residual sd is its own, the tokens are those of all.

    Without tokens of the study, laws that depend on them predict for the study's law's.

    Raises:
        UsageError: tokens, and no law that depends on them; two laws of one name.
    """
    seen = [each for each in (law, *rivals) if "tokens" in each.law_form.features]
    if config.tokens is not None and not seen:
        raise UsageError(
            f"tokens: expected a law that depends on them, got {law.name}, which is of {law.tokens or 0:g} tokens; "
            "drop it, or take another law (plas list laws)"
        )
    distinct: dict[str, Law] = {}
    for each in (law, *rivals):
        if distinct.setdefault(each.name, each).mapping() != each.mapping():
            raise UsageError(
                f"laws: expected laws of different names, got two called {each.name}; rename one in its file"
            )
    own, *others = (_predicting(each, config.tokens or law.tokens) for each in distinct.values())
    return own if config.residual_sd is None else own.model_copy(update={"residual_sd": config.residual_sd}), *others


def _predicting(law: Law, tokens: float | None) -> Law:
    """The law for so many tokens, if it depends on them."""
    depends = tokens is not None and "tokens" in law.law_form.features
    return law.model_copy(update={"tokens": tokens}) if depends else law


def priced_alone(law: Law) -> list[str]:
    """That a law says nothing of other designs than those; nothing of a law that prices every design."""
    return (
        [f"law {law.name} prices {law.priced_designs} alone: of other designs it says nothing"] if law.partial else []
    )
