"""The paper's form without its KV term, which spans 0.023 nats of 2 in the paper's space."""

from objectives.law_forms.hw_codesign import BOUNDS, DEPTH, IRREDUCIBLE, SPARSITY, WIDTH
from objectives.loss_law.form import Form

FORM = Form(
    terms={"depth": DEPTH, "sparsity": SPARSITY, "width": WIDTH, "irreducible": IRREDUCIBLE},
    bounds={**BOUNDS, "beta_2": (0.01, 3.0)},
)
