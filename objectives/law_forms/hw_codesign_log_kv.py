"""The paper's form with −κ_m ln(d_m/512) for the KV term: its exponent and L_∞ are not identifiable together."""

from objectives.law_forms.hw_codesign import BOUNDS, DEPTH, IRREDUCIBLE, SPARSITY, WIDTH
from objectives.loss_law.form import Form, Term

KV = Term(scale="kappa_m", logs={"kv_dim": 512.0}, sign=-1)

FORM = Form(
    terms={"depth": DEPTH, "sparsity": SPARSITY, "width": WIDTH, "kv": KV, "irreducible": IRREDUCIBLE},
    bounds={**BOUNDS, "beta_2": (0.01, 3.0)},
)
