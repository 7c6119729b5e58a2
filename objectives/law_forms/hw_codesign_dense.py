"""The paper's form for dense models: no sparsity term, the KV term as −κ_m ln(d_m/512)."""

from objectives.form import Form
from objectives.law_forms.hw_codesign import BOUNDS, DEPTH, IRREDUCIBLE, WIDTH
from objectives.law_forms.hw_codesign_log_kv import KV

FORM = Form(
    terms={"depth": DEPTH, "width": WIDTH, "kv": KV, "irreducible": IRREDUCIBLE},
    bounds={"alpha_l": BOUNDS["alpha_l"], "alpha_r": BOUNDS["alpha_r"], "beta_2": (0.01, 3.0)},
)
