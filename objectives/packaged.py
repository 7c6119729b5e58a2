"""Content of the YAML files that a package of ours holds."""

from typing import Any

import yaml

from objectives import outside
from objectives.plugins import documents


def packaged(package: str, name: str) -> Any:
    """The content of a document of a package."""
    return yaml.safe_load(outside.text(documents(package)[name], outside.MB))
