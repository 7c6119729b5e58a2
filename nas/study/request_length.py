"""How long a request is: in tokens, or in bytes of text, which are as many tokens as each vocabulary needs for them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nas.errors import UsageError
from nas.files.faults import Faults
from nas.study.configuration import IN_TEXT, IN_TOKENS, StudyConfig
from nas.study.study_laws import cost_beside
from objectives.loss_law.law import Law
from objectives.token_curve import Text, TokenCurve


def refuse_both(raw: Mapping[str, Any], faults: Faults) -> None:
    """Refuse a length in tokens and in text at once."""
    for tokens, text in IN_TEXT.items():
        if _given(raw, tokens) and _given(raw, text):
            faults.add((text,), f"expected {tokens} or {text}, got both; drop one")


def _given(raw: Mapping[str, Any], key: str) -> bool:
    return raw.get(key) not in (None, "none")


def with_request(text: Text, config: StudyConfig) -> Text:
    """The text with the study's request, where that is given in bytes."""
    return replace(text, prompt=config.input_text or 0.0, answer=config.output_text or 0.0)


def in_tokens(config: StudyConfig, text: Text) -> StudyConfig:
    """The study with the tokens that its text makes: of the vocabulary of every design, without one those of the law's tokenizer.

    Raises:
        UsageError: a vocabulary that the curve does not count.
    """
    here = text.at(config.head[0])
    try:
        found = {
            tokens: here.tokens_of(size)
            for tokens, key in IN_TEXT.items()
            if (size := getattr(config, key)) is not None
        }
    except ValueError as error:
        raise UsageError(str(error)) from None
    return config.model_copy(update=found) if found else config


def without_made(config: StudyConfig) -> dict[str, None]:
    """No value for each length in tokens that text makes, as a study is recorded: the text is what was given."""
    return {tokens: None for tokens, text in IN_TEXT.items() if getattr(config, text) is not None}


def recorded_lengths(resolved: Mapping[str, Any]) -> dict[str, int]:
    """Tokens read and written, `input_tokens` and `output_tokens`, of a recorded study, as `in_tokens` has them."""
    if not any(_given(resolved, text) for text in IN_TOKENS):
        return {tokens: int(resolved[tokens]) for tokens in IN_TEXT}
    kept = {key: resolved[key] for key in (*IN_TEXT, *IN_TOKENS, "vocabulary")}
    curve, law = TokenCurve.model_validate(resolved["token_curve"]), Law.model_validate(resolved["law"])
    config = in_tokens(StudyConfig.model_validate(kept), Text(curve, cost_beside(law)))
    return {tokens: getattr(config, tokens) for tokens in IN_TEXT}
