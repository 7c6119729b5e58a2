"""The loss law as a convex function of the logarithms of depth, width, FFN ratio, gqa and activation rate."""

from math import log

import numpy as np

from nas.errors import UsageError
from nas.terminal.program import command
from nas.theory.posynomial import VARIABLES, Convex, Posynomial
from objectives.loss_law.form import Term, named_form, signed_exponent
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray

POWERS = {  # what a law may depend on, as powers of the variables: d_m = d / gqa
    "depth": (1, 0, 0, 0, 0),
    "width": (0, 1, 0, 0, 0),
    "ffn_ratio": (0, 0, 1, 0, 0),
    "kv_dim": (0, 1, 0, -1, 0),
    "activation_rate": (0, 0, 0, 0, 1),
}
SOLVED_BY_HAND = ("hw_codesign", "hw_codesign_log_kv")


def loss_of(law: Law) -> Convex:
    """The loss, nats per token: powers of the variables, what is linear in their logarithms, a constant.

    A logarithm alone is linear and so convex whatever its sign; a power needs a positive coefficient.

    Raises:
        UsageError: a law that is not convex in these variables, or depends on others.
    """
    if law.law_form.of != "loss":
        raise _refused(law, "its terms add up to the logarithm of the loss")
    if law.law_form.factors:
        raise _refused(law, f"the sum of its terms is multiplied by others ({', '.join(law.law_form.factors)})")
    if law.law_form.joined:
        raise _refused(law, f"its terms {' and '.join(law.law_form.joined)} are joined, so that they do not add up")
    if law.partial:
        raise _refused(law, f"it prices {law.priced_designs}")
    powers: list[tuple[float, tuple[float, ...]]] = []
    slopes, constant = np.zeros(len(VARIABLES)), 0.0
    for name, term in law.law_form.terms.items():
        scale = _scale(law, name, term)
        logs = [feature for feature in term.logs if feature != "tokens"]
        exponents = _exponents(law, term)
        if logs and (len(logs) > 1 or exponents.any()):
            raise _refused(law, f"its term {name} multiplies a logarithm by another quantity")
        if logs:
            slopes += scale * np.array(POWERS[logs[0]])
            constant -= scale * log(term.logs[logs[0]])
        elif not exponents.any():
            constant += scale
        elif scale < 0.0:
            raise _refused(law, f"{term.scale} makes its term {name} negative ({scale:g}), which is not convex")
        else:
            powers.append((scale, tuple(exponents.tolist())))
    return Convex(Posynomial.from_terms(powers), slopes, constant)


def _scale(law: Law, name: str, term: Term) -> float:
    """The factor before the variables of a term: its scale, sign and powers and logarithms of the tokens."""
    foreign = [feature for feature in term.features if feature not in POWERS and feature != "tokens"]
    foreign += [] if term.plain else ["crossed exponents" if term.crossed else f"whether a design is {term.only}"]
    if foreign:
        raise _refused(law, f"its term {name} depends on {', '.join(foreign)}")
    factor, tokens = term.sign * law.coefficients[term.scale], law.tokens or 1.0
    if "tokens" in term.powers:
        factor *= tokens ** signed_exponent(term.powers["tokens"], law.coefficients)
    return factor * log(tokens / term.logs["tokens"]) if "tokens" in term.logs else factor


def _exponents(law: Law, term: Term) -> FloatArray:
    found = np.zeros(len(VARIABLES))
    for feature, written in term.powers.items():
        if feature != "tokens":
            found += signed_exponent(written, law.coefficients) * np.array(POWERS[feature])
    return found


def _refused(law: Law, because: str) -> UsageError:
    form = law.form if isinstance(law.form, str) else law.name
    return UsageError(
        f"theory: expected a law of powers of {', '.join(POWERS)} or the logarithm of one of them, got {form}: {because}; "
        f"give --law {SOLVED_BY_HAND[0]}, or use {command('run')} --algo exact"
    )


def no_closed_form(law: Law) -> str:
    """Why the cases solved by hand do not hold for a law; "" where they do."""
    own = law.law_form
    if own.joined or not any(own.terms == named_form(form).terms for form in SOLVED_BY_HAND):
        return f"they are solved for laws of the form {' or '.join(SOLVED_BY_HAND)}"
    needed = [name for name in law.coefficients if name not in ("l_inf", "beta_1", "beta_2")]
    faults = [f"{name} {law.coefficients[name]:g}" for name in needed if law.coefficients[name] <= 0.0]
    return f"they need positive coefficients, and the law has {', '.join(faults)}" if faults else ""
