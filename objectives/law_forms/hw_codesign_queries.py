"""The paper's form with −κ_m ln(d_m/512) for the KV term and −κ_q ln(d_q/1024) for attention size, d_q = n_heads · d_h.

Needs rows whose d_q is not the width throughout: else the term is one of the width.
"""

from objectives.law_forms.hw_codesign import BOUNDS, DEPTH, IRREDUCIBLE, SPARSITY, WIDTH
from objectives.law_forms.hw_codesign_log_kv import KV
from objectives.loss_law.form import Form, Term

QUERIES = Term(scale="kappa_q", logs={"query_dim": 1024.0}, sign=-1)

FORM = Form(
    terms={
        "depth": DEPTH,
        "sparsity": SPARSITY,
        "width": WIDTH,
        "kv": KV,
        "queries": QUERIES,
        "irreducible": IRREDUCIBLE,
    },
    bounds={**BOUNDS, "beta_2": (0.01, 3.0)},
)
