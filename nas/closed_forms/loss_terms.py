"""The loss law as a posynomial of depth, width, FFN ratio, gqa and activation rate."""

from nas.closed_forms.posynomial import Posynomial
from nas.errors import UsageError
from objectives.law import Law

FORM = "hw_codesign"


def refuse_other_forms(law: Law) -> None:
    """Say why a law has no closed form.

    Raises:
        UsageError: another form, or coefficients that are not positive where they must be.
    """
    if law.form != FORM:
        raise UsageError(
            f"theory: expected a law of the form {FORM}, got {law.form}: no closed form applies; python -m nas.run --algo exact answers"
        )
    needed = ("kappa_l", "kappa_rho", "kappa_d", "kappa_m", "alpha_l", "alpha_r", "alpha_rho", "alpha_m")
    for name in needed:
        if law.coefficients[name] <= 0.0:
            raise UsageError(
                f"theory: expected a positive {name}, got {law.coefficients[name]:g}: no closed form applies; python -m nas.run --algo exact answers"
            )


def loss_above_limit(law: Law) -> Posynomial:
    """L − L_∞, nats per token, with d_m = d / gqa.

    κ_l l^−α_l + κ_ρ ρ^α_ρ r^−α_r d^−β1 + κ_d r^−α_r d^−β2 + κ_m gqa^α_m d^−α_m. Source: paper [eq:loss].
    """
    c = law.coefficients
    return Posynomial.of(
        [
            (c["kappa_l"], (-c["alpha_l"], 0, 0, 0, 0)),
            (c["kappa_rho"], (0, -c["beta_1"], -c["alpha_r"], 0, c["alpha_rho"])),
            (c["kappa_d"], (0, -c["beta_2"], -c["alpha_r"], 0, 0)),
            (c["kappa_m"], (0, -c["alpha_m"], 0, c["alpha_m"], 0)),
        ]
    )
