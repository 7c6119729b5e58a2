"""Exports of layers of several kinds in the transformers that is installed: parameters, exact weights, gradients, windows."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nas.errors import UsageError
from nas.export.families import family_of, in_order
from nas.export.hf_config import built_parameters, config_of
from nas.export.model import Model
from nas.export.stack_files import differences
from nas.export.stacks import hf
from nas.study.catalogue import load_space
from objectives import counts
from search_spaces.architectures import Architectures
from tests.nas.export.kinds import HELD

Exported = Callable[..., Model]
pytestmark = pytest.mark.slow


def own_counts(architecture: Architectures) -> dict[str, int]:
    """Ours."""
    return {
        "params_total": int(counts.total(architecture)[0]),
        "params_active": int(counts.active(architecture)[0]),
    }


def built(model: Model, folder: Path) -> dict[str, int]:
    """transformers' count of a directory that holds config.json alone."""
    (folder / "config.json").write_text(json.dumps(config_of(model)))
    return built_parameters(folder)


@pytest.mark.parametrize("name", HELD)
def test_the_class_has_our_parameters(exported: Exported, tmp_path: Path, name: str) -> None:
    model = exported(HELD[name][1])
    assert built(model, tmp_path) == own_counts(model.architecture)


def test_edge2026_designs_have_our_parameters(exported: Exported, tmp_path: Path) -> None:
    """Three random designs of every class, of whatever size."""
    space = load_space("edge2026")
    keys = np.random.default_rng(2).integers(0, space.size, 3000)
    architectures = space.architectures(space.genotypes(keys)).with_vocabulary(50_257)
    seen: dict[str, int] = {}
    for i in range(len(architectures)):
        a = architectures[i : i + 1]
        try:
            name = family_of(a).class_name
        except UsageError:
            continue
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= 3:
            assert built(exported(a), tmp_path) == own_counts(a), keys[i]
    assert len(seen) >= 5


@pytest.mark.parametrize("name", HELD)
def test_what_training_saves_again_is_as_exported(exported: Exported, tmp_path: Path, name: str) -> None:
    """transformers writes only what differs from its class, and in its own spelling."""
    from transformers import AutoConfig

    model = exported(HELD[name][1])
    hf.emit(model, tmp_path)
    AutoConfig.from_pretrained(tmp_path).save_pretrained(tmp_path)
    assert differences(hf.fields(model), hf.read(tmp_path)) == []


@pytest.mark.parametrize("name", HELD)
def test_weights_load_exactly_and_train(exported: Exported, tmp_path: Path, name: str) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    folder = tmp_path / "hf"
    folder.mkdir()
    hf.emit(exported(HELD[name][1], recipe="scaled", weights=True), folder)
    model, said = AutoModelForCausalLM.from_pretrained(folder, torch_dtype="auto", output_loading_info=True)
    assert not said["missing_keys"]
    assert not said["unexpected_keys"]
    model.save_pretrained(tmp_path / "again")
    first, second = load_file(folder / "model.safetensors"), load_file(tmp_path / "again" / "model.safetensors")
    assert first.keys() == second.keys()
    assert all(torch.equal(first[key], second[key]) for key in first)
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "again", torch_dtype="auto")
    model, again = model.float(), again.float()
    ids = torch.arange(96).reshape(2, 48) % 250
    with torch.no_grad():
        assert torch.equal(model.eval()(input_ids=ids).logits, again.eval()(input_ids=ids).logits)
    model.train()(input_ids=ids, labels=ids).loss.backward()
    held = [p for p in model.parameters() if p.numel()]
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in held)
    routers = [
        p for key, p in model.named_parameters() if key.endswith(("mlp.gate.weight", "feed_forward.gate.weight"))
    ]
    assert all(p.grad.abs().max() > 1e-7 for p in routers)


@pytest.mark.parametrize("name", ["windows", "windows, experts", "four norms"])
def test_windows_are_where_the_order_says(exported: Exported, tmp_path: Path, name: str) -> None:
    """A layer within the window keeps the newest keys alone, one of full attention all of them."""
    import torch
    from transformers import AutoModelForCausalLM, DynamicCache

    model = exported(HELD[name][1], weights=True)
    hf.emit(model, tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    cache = DynamicCache(config=loaded.config)
    with torch.no_grad():
        loaded(torch.arange(40).reshape(1, 40), past_key_values=cache, use_cache=True)
        loaded(torch.tensor([[7]]), past_key_values=cache, use_cache=True)
    kept = [layer.keys.shape[-2] for layer in cache.layers]
    window = model.column("window")
    assert kept == [41 if kind == "full" else window - 1 for kind in in_order(model.architecture)]


def test_the_last_layers_read_the_caches_of_others(exported: Exported, tmp_path: Path) -> None:
    """Only owners keep keys; with them a prefill and steps give what the whole text gives at once."""
    import torch
    from transformers import AutoModelForCausalLM, DynamicCache

    model = exported(HELD["shared caches"][1], weights=True)
    hf.emit(model, tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path).float().eval()
    ids, cache = torch.arange(44).reshape(1, 44), DynamicCache(config=loaded.config)
    with torch.no_grad():
        whole = loaded(ids).logits[0]
        parts = [loaded(ids[:, :40], past_key_values=cache, use_cache=True).logits[0]]
        parts += [loaded(ids[:, i : i + 1], past_key_values=cache, use_cache=True).logits[0] for i in range(40, 44)]
    assert torch.allclose(torch.cat(parts), whole, atol=1e-4)
    kept, kinds = (
        [layer.keys.shape[-2] for layer in cache.layers if layer.keys is not None],
        in_order(model.architecture),
    )
    owners = model.column("depth") - model.column("n_kv_shared")
    assert kept == [44 if kind == "full" else model.column("window") - 1 for kind in kinds[:owners]]
    assert kinds[-1] == "full"
