"""L = κ_l/l^α_l + κ_ρ ρ^α_ρ/(r^α_r d^β1) + κ_d/(r^α_r d^β2) + κ_m/d_m^α_m + L_∞ (Sun et al. 2026).

Where l depth, ρ = K/E, r = (K·m)/d, d width, d_m = d_h·n_kv.
Source: paper [eq:loss], [app:scaling_coefficients].
"""

from collections.abc import Mapping

import numpy as np

from search_spaces.architectures import Architectures, Part
from search_spaces.arrays import FloatArray

COEFFICIENTS = (
    *("kappa_l", "alpha_l", "kappa_rho", "alpha_rho", "alpha_r", "beta_1"),
    *("kappa_d", "beta_2", "kappa_m", "alpha_m", "l_inf"),
)

PART_OF: dict[str, Part] = {
    "depth": "base",
    "sparsity": "ffn",
    "width": "ffn",
    "kv": "attention",
    "irreducible": "base",
}


def terms(architectures: Architectures, c: Mapping[str, float]) -> dict[str, FloatArray]:
    """The law's terms, nats per token, each (n,)."""
    width = architectures.width.astype(np.float64)
    ffn = architectures.ffn_ratio ** c["alpha_r"]
    sparsity = architectures.activation_rate ** c["alpha_rho"]
    return {
        "depth": c["kappa_l"] / architectures.depth.astype(np.float64) ** c["alpha_l"],
        "sparsity": c["kappa_rho"] * sparsity / (ffn * width ** c["beta_1"]),
        "width": c["kappa_d"] / (ffn * width ** c["beta_2"]),
        "kv": c["kappa_m"] / architectures.kv_dim.astype(np.float64) ** c["alpha_m"],
        "irreducible": np.full(len(architectures), c["l_inf"]),
    }
