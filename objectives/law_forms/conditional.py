"""L = (a_0 + a_1 ln u + a_2/u) (b_0 + b_1 ln r + b_2/r) (A/N^α + B/D^β + E), u = d/√N, r = FFN/attention (Bian et al. 2025).

Where N active parameters without embeddings, D training tokens, r parameters of the FFN that a token uses over those of
attention. The third factor, the loss of the best shape of N and D, is that of Chinchilla. A form to use, not to fit.
Source: arXiv 2510.18245.
"""

from objectives.loss_law.form import Form, Term

WIDTH, RATIO, N = "normalised_width", "ffn_attention_ratio", "active_parameters"

FORM = Form(
    terms={
        "parameters": Term(scale="a", powers={N: "-alpha"}),
        "tokens": Term(scale="b", powers={"tokens": "-beta"}),
        "irreducible": Term(scale="e"),
    },
    factors={
        "width": {
            "width_constant": Term(scale="a_0"),
            "width_log": Term(scale="a_1", logs={WIDTH: 1.0}),
            "width_inverse": Term(scale="a_2", powers={WIDTH: "-one"}),
        },
        "ratio": {
            "ratio_constant": Term(scale="b_0"),
            "ratio_log": Term(scale="b_1", logs={RATIO: 1.0}),
            "ratio_inverse": Term(scale="b_2", powers={RATIO: "-one"}),
        },
    },
)
