"""L = κ_l/l^α_l + κ_ρ ρ^α_ρ/(r^α_r d^β1) + κ_d/(r^α_r d^β2) + κ_m/d_m^α_m + L_∞ (Sun et al. 2026).

Where l depth, ρ = K/E, r = (K·m)/d, d width, d_m = d_h·n_kv.
Source: paper [eq:loss], [app:scaling_coefficients].
"""

from objectives.loss_law.form import Form, Term

BOUNDS = {"alpha_l": (0.01, 4.0), "alpha_rho": (0.01, 3.0), "alpha_r": (0.0, 2.0), "beta_1": (-2.0, 2.0)}
DEPTH = Term(scale="kappa_l", powers={"depth": "-alpha_l"})
SPARSITY = Term(scale="kappa_rho", powers={"activation_rate": "alpha_rho", "ffn_ratio": "-alpha_r", "width": "-beta_1"})
WIDTH = Term(scale="kappa_d", powers={"ffn_ratio": "-alpha_r", "width": "-beta_2"})
KV = Term(scale="kappa_m", powers={"kv_dim": "-alpha_m"})
IRREDUCIBLE = Term(scale="l_inf")

FORM = Form(
    terms={"depth": DEPTH, "sparsity": SPARSITY, "width": WIDTH, "kv": KV, "irreducible": IRREDUCIBLE},
    bounds={**BOUNDS, "beta_2": (0.01, 3.0), "alpha_m": (0.001, 2.0)},
)
