"""Refusals, by name, of spaces that no training or measurement supports, before any runs."""

from nas.errors import UsageError
from search_spaces.layer_kinds import COUNTS
from search_spaces.space import SearchSpace


def refuse_settings(metric: str, space: SearchSpace) -> None:
    """Refuse axes that are none of the architecture: every training is of one number of tokens, every run in one format.

    Raises:
        UsageError: naming the axis.
    """
    for axis in space.settings:
        raise UsageError(
            f"{metric}: expected a space whose designs are architectures alone, got {axis} as an axis of {space.name}; "
            f"name one value, or drop {metric}"
        )


def refuse_layers(metric: str, space: SearchSpace) -> None:
    """Refuse layers that no class of transformers and no backend of ours builds as they are priced.

    Raises:
        UsageError: naming the columns.
    """
    columns = space.mixes.columns
    others = [name for name in COUNTS if name in columns and columns[name][space.mixes.valid].any()]
    if others:
        raise UsageError(
            f"{metric}: expected full attention and an FFN in every layer, got {', '.join(others)} in space {space.name}; "
            f"narrow axes.layers, or drop {metric}"
        )
