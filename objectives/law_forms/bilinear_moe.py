"""ln L = a ln(N/10⁸) + b ln E + c ln(N/10⁸) ln E + d (Clark et al. 2022, without their saturation in E).

Where N active parameters, E experts. Source: arXiv 2202.01169 [eq. 7].
"""

from objectives.loss_law.form import Form, Term

SIZE, EXPERTS = {"active_parameters": 1e8}, {"n_experts": 1.0}

FORM = Form(
    terms={
        "size": Term(scale="a", logs=SIZE, any_sign=True),
        "experts": Term(scale="b", logs=EXPERTS, any_sign=True),
        "both": Term(scale="c", logs={**SIZE, **EXPERTS}, any_sign=True),
        "constant": Term(scale="d", any_sign=True),
    },
    of="log_loss",
    residuals="log_loss",
)
