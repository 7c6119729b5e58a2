"""The paper's form for dense models: no sparsity term, the KV term as −κ_m ln(d_m/512)."""

from objectives.law_forms.hw_codesign import BOUNDS, DEPTH, IRREDUCIBLE, WIDTH
from objectives.law_forms.hw_codesign_log_kv import KV
from objectives.loss_law.form import Form

FORM = Form(
    terms={"depth": DEPTH, "width": WIDTH, "kv": KV, "irreducible": IRREDUCIBLE},
    bounds={"alpha_l": BOUNDS["alpha_l"], "alpha_r": BOUNDS["alpha_r"], "beta_2": (0.01, 3.0)},
)
