"""L = κ/N^α + L_∞ in the active parameters N, embeddings excluded."""

from objectives.loss_law.form import Form, Term

FORM = Form(
    terms={
        "parameters": Term(scale="kappa", powers={"active_parameters": "-alpha"}),
        "irreducible": Term(scale="l_inf"),
    },
    bounds={"alpha": (0.01, 2.0)},
)
