"""Tokens that differ between rows, and forms that have no term for them."""

import numpy as np

from objectives.fitting.trained_models import Table
from objectives.loss_law.form import Form, named_form
from objectives.plugins import importable

ALIKE = 0.1  # relative difference up to which counts of tokens are one


def unseen_tokens(table: Table, form: Form) -> str | None:
    """What to do where training tokens vary and the form does not depend on them; None where neither is so."""
    if "tokens" in form.features or not table.has("tokens"):
        return None
    tokens = table.feature("tokens")
    if float(np.ptp(tokens)) <= ALIKE * float(tokens.min()):
        return None
    with_tokens = [name for name in importable("objectives.law_forms") if "tokens" in named_form(name).features]
    counts, rows = np.unique(tokens, return_counts=True)
    most = int(np.argmax(rows[::-1])) if len(rows) else 0  # of equally frequent ones the largest
    count, kept = float(counts[::-1][most]), int(rows[::-1][most])
    keep = f"--where tokens={count:.17g} keeps {kept} of {len(table)} rows of one count, or " if kept > 1 else ""
    return (
        f"tokens vary, {tokens.min():.3g} to {tokens.max():.3g}, and this form has no term for them: what they do is read as the "
        f"architecture's doing; {keep}choose a form with tokens ({', '.join(with_tokens)}, or one of your own with --form FILE.yaml)"
    )
