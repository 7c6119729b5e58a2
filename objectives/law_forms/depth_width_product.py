"""L = κ / (l^α_l d^β) + L_∞: depth and width alone, one term."""

from objectives.loss_law.form import Form, Term

FORM = Form(
    terms={
        "size": Term(scale="kappa", powers={"depth": "-alpha_l", "width": "-beta"}),
        "irreducible": Term(scale="l_inf"),
    },
    bounds={"alpha_l": (0.0, 4.0), "beta": (0.0, 3.0)},
)
