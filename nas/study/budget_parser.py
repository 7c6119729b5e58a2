"""Budgets as users write them, in files and on the command line: `decode_ms=20`, `rate>=20`."""

import re
from typing import Any

from nas.problem.objective import costs, is_rate
from search_spaces.axes_schema import CAPABILITIES, UPPER

BUDGET = re.compile(r"^([^<>=]*[^<>=\s][^<>=]*)(<=|>=|==|<|>|=)([^<>=]*[^<>=\s][^<>=]*)$")


def split_budgets(value: Any) -> Any:
    """`decode_ms=20`, `decode_ms<=20`, or a list of them, as a mapping.

    Raises:
        ValueError: another form, or two limits on one metric.
    """
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return value
    found: dict[str, str] = {}
    for metric, limit in map(split_budget, map(str, value)):
        if found.setdefault(metric, limit) != limit:
            raise ValueError(f"expected one limit on {metric}, got {found[metric]} and {limit}; keep one")
    return found


def split_budget(text: str) -> tuple[str, str]:
    """`decode_ms=20` or `decode_ms<=20` as metric and limit, both texts; the limit of `rate>=20` is `>=20`.

    Raises:
        ValueError: another form, with the one that is meant.
    """
    found = BUDGET.match(text)
    if found is None:
        raise ValueError(f"expected metric=limit, got {text!r}; write for example decode_ms=20")
    metric, sign, limit = found.groups()
    metric, limit = metric.strip(), limit.strip()
    if sign not in ("=", "<=", ">="):
        least, most = f"{metric}>={limit}", f"{metric}<={limit}"
        if is_rate(metric) or (metric in CAPABILITIES and metric not in UPPER):
            raise ValueError(f"expected metric>=limit, at least, got {text!r}; write '{least}'")
        remedy = f"only rates have a lower limit ({', '.join(costs())}), drop it" if sign == ">" else f"write '{most}'"
        raise ValueError(f"expected metric<=limit, at most, got {text!r}; {remedy}")
    return metric, f"{'>=' * (sign == '>=')}{limit}"
