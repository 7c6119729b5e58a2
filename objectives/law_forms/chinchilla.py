"""L = A/N^α + B/D^β + E in parameters N and training tokens D (Hoffmann et al. 2022, approach 3).

Source: arXiv 2203.15556 [eq. 10]; residuals of log L as there, refitted by Besiroglu et al. 2024.
"""

from objectives.loss_law.form import Form, Term

FORM = Form(
    terms={
        "parameters": Term(scale="a", powers={"parameters": "-alpha"}),
        "tokens": Term(scale="b", powers={"tokens": "-beta"}),
        "irreducible": Term(scale="e"),
    },
    residuals="log_loss",
    bounds={"alpha": (0.01, 2.0), "beta": (0.01, 2.0)},
)
