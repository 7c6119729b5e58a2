"""L = κ_l/l^α_l + κ_d/d^β + L_∞: depth and width alone, additive."""

from objectives.loss_law.form import Form, Term

FORM = Form(
    terms={
        "depth": Term(scale="kappa_l", powers={"depth": "-alpha_l"}),
        "width": Term(scale="kappa_d", powers={"width": "-beta"}),
        "irreducible": Term(scale="l_inf"),
    },
    bounds={"alpha_l": (0.01, 4.0), "beta": (0.01, 3.0)},
)
