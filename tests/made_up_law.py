"""A law that is made up, with draws around its coefficients."""

import numpy as np

from objectives.loss_law.law import Law

TRUE = {
    "kappa_l": 9.96, "alpha_l": 1.63, "kappa_rho": 0.031, "alpha_rho": 1.09, "alpha_r": 0.17,
    "beta_1": -0.33, "kappa_d": 500.0, "beta_2": 0.97, "kappa_m": 0.005, "l_inf": 2.6,
}  # fmt: skip


def law_with(varying: tuple[str, ...], sd: float, draws: int = 60) -> Law:
    """Draws around the true coefficients, of some of them."""
    generator = np.random.default_rng(0)
    off = np.array([0.08 * (name in varying) for name in TRUE])
    rows = np.array(list(TRUE.values())) * (1 + off * generator.normal(size=(draws, len(TRUE))))
    return Law.model_validate(
        {
            "form": "hw_codesign_log_kv",
            "coefficients": TRUE,
            "draws": tuple(" ".join(repr(v) for v in row) for row in rows.tolist()),
            "tokens": 1e10,
            "residual_sd": sd,
        }
    )
