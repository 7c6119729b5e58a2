"""The formula of a fit as text: with names, with a law file's coefficients, and about the reference design."""

from collections.abc import Callable, Mapping

from objectives.fitting.estimate import Fit
from objectives.loss_law.form import Form, Term
from objectives.loss_law.layer_deltas import SHARES

Factor = Callable[[str], str]


def formulas(fit: Fit) -> dict[str, str]:
    """The same formula three times: `names` of coefficients, `raw` (the law file's numbers), `reference`.

    The last has each quantity over its value at the reference design, so that a scale is its term's contribution there.
    """
    form, model, raw = fit.model.form, fit.model, fit.coefficients
    scales = dict(zip(form.scales, fit.vector[: model.count].tolist(), strict=True))
    return {
        "names": _sum(form, lambda term: term.scale, lambda name: name, lambda name: name),
        "raw": _sum(form, lambda term: f"{raw[term.scale]:.4g}", _numbers(raw), lambda name: name),
        "reference": _sum(
            form,
            lambda term: f"{scales[term.scale]:.4g}",
            _numbers(raw),
            lambda name: f"({name}/{model.reference[name]:.4g})",
        ),
    }


def _numbers(coefficients: Mapping[str, float]) -> Factor:
    return lambda name: f"{coefficients[name]:.4g}"


def _sum(form: Form, scale: Callable[[Term], str], exponent: Factor, quantity: Factor) -> str:
    """`loss = a · b^-c + …`; a term's own sign stands before it."""
    said = "ln loss" if form.of == "log_loss" else "loss"
    terms = [
        (term.sign, " · ".join([scale(term), *_factors(term, exponent, quantity), *([name] if name in SHARES else [])]))
        for name, term in form.terms.items()
    ]
    first, *others = terms
    return f"{said} = {'−' * (first[0] < 0)}{first[1]}" + "".join(f" {'−' if s < 0 else '+'} {t}" for s, t in others)


def _factors(term: Term, exponent: Factor, quantity: Factor) -> list[str]:
    exponents = {name: _signed(written, exponent) for name, written in term.powers.items()}
    powers = [f"{quantity(name)}^{written}" for name, written in exponents.items() if written not in ("0", "-0")]
    return powers + [f"ln({name}/{at:g})" for name, at in term.logs.items()]


def _signed(written: str, exponent: Factor) -> str:
    """An exponent with its sign, two of them taken together."""
    value = exponent(written.removeprefix("-"))
    if not written.startswith("-"):
        return value
    return value[1:] if value.startswith("-") else f"-{value}"
