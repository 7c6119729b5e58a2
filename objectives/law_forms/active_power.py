"""L = κ/N^a + κ_ρ ρ^b/N^c + L_∞ in the active parameters N and the activation rate ρ = K/E."""

from objectives.loss_law.form import Form, Term

FORM = Form(
    terms={
        "parameters": Term(scale="kappa", powers={"active_parameters": "-a"}),
        "sparsity": Term(scale="kappa_rho", powers={"activation_rate": "b", "active_parameters": "-c"}),
        "irreducible": Term(scale="l_inf"),
    },
    bounds={"a": (0.01, 2.0), "b": (0.0, 2.0), "c": (-1.0, 2.0)},
)
