"""BokehJS as it lies in the installed package, read without importing bokeh, whose models take half a second."""

from importlib.util import find_spec
from pathlib import Path

from nas.errors import PlasError

PARTS = ("bokeh.min.js", "bokeh-api.min.js")  # figures, tools and glyphs; then the plotting interface


def bokeh_scripts() -> tuple[str, ...]:
    """The text of each script, in loading order.

    Raises:
        PlasError: no bokeh, or one without its scripts.
    """
    spec = find_spec("bokeh")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise PlasError("report: expected bokeh in this environment, got none; install it, or use --no-plots")
    static = Path(folders[0], "server", "static", "js")
    try:
        return tuple((static / name).read_text(encoding="utf-8") for name in PARTS)
    except OSError as error:
        raise PlasError(f"report: expected BokehJS in {static} ({error.strerror}); install bokeh again") from None
