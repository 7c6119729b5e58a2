"""Tables of a comparison in LaTeX, for the package booktabs."""

from collections.abc import Iterable

from nas.document.document import Table

#: What LaTeX would obey, as it is written to be seen.
LATEX = str.maketrans(
    {c: rf"\{c}" for c in "&%_#${}"} | {"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\textasciitilde{}"}
)


def latex_tables(tables: Iterable[Table]) -> str:
    """Tables one below the other."""
    return "\n\n".join(map(latex_table, tables)) + "\n"


def latex_table(table: Table) -> str:
    """A table's title and its rows."""
    head, *body = [" & ".join(map(_latex, cells)) + r" \\" for cells in (table.header, *table.texts)]
    columns = "l" + "r" * (len(table.columns) - 1)
    begin = [r"\begin{table}", rf"\caption{{{_latex(table.title)}}}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    return "\n".join([*begin, head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _latex(text: str) -> str:
    return text.translate(LATEX).replace("<=", r"$\le$")
