"""Builds an exported directory with transformers, where it is installed, and counts its parameters; no weights are made."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from objectives.plugins import version_of


def transformers_version() -> str | None:
    """The version that can build models here, None without it or without torch."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        return None
    return version_of("transformers")


def refuse_missing(command: str) -> None:
    """Refuse to begin without the packages that train and score models.

    Raises:
        UsageError: naming what to install.
    """
    absent = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if absent:
        text = f"expected torch and transformers, got no {' and no '.join(absent)}; pip install 'plas-codesign[hf]'"
        raise UsageError(f"{command}: {text}")


def built_parameters(folder: Path) -> dict[str, int]:
    """Total and active parameters of the model built on the meta device; of E experts K are active."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with torch.device("meta"):
        made: Any = AutoModelForCausalLM
        model = made.from_config(config)
    experts_of = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None) or 1
    share = getattr(config, "num_experts_per_tok", 1), experts_of
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    experts = sum(size for name, size in sizes.items() if ".experts." in name)
    total = sum(sizes.values())
    return {"params_total": total, "params_active": total - experts + experts * share[0] // share[1]}
