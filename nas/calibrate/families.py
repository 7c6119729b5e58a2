"""Families of published models as llama.cpp calls them."""

from nas.study.model_configs import FAMILIES
from search_spaces.architectures import Architectures


def of_llama_cpp(name: str, architecture: Architectures) -> bool:
    """Whether llama.cpp would call an architecture so; True for a name that is not known here."""
    own = [family for family in FAMILIES.values() if family.llama_cpp == name]
    return not own or any(family.fits(architecture) for family in own)


def known(name: str) -> bool:
    """Whether llama.cpp's name of a family is one of ours."""
    return any(family.llama_cpp == name for family in FAMILIES.values())
