"""Fixtures of the objective tests: laws, devices, random architectures, and settings for product and oracle."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from objectives.device import Calibration, Device
from objectives.loss_law.law import Law
from objectives.plugins import documents
from objectives.precision import precision
from objectives.scenario import Scenario
from objectives.training import Training
from search_spaces.architectures import Architectures, one
from search_spaces.columns import DEFAULTS, NOT_OF_A_MODEL, QK_NORMS, SHAPE, worded
from search_spaces.space import SearchSpace

ORIN = "jetson_agx_orin_64gb"


@pytest.fixture(scope="session")
def law(shipped: Callable[[str, str], dict[str, Any]]) -> Law:
    """The paper's law."""
    return Law.model_validate(shipped("objectives.laws", "hw_codesign"))


@pytest.fixture(scope="session")
def device(shipped: Callable[[str, str], dict[str, Any]]) -> Callable[[str], Device]:
    """A shipped device by its id."""

    @cache
    def load(name: str) -> Device:
        return Device.model_validate(shipped("objectives.devices", name))

    return load


@pytest.fixture(scope="session")
def model(shipped: Callable[[str, str], dict[str, Any]]) -> Callable[[str], Architectures]:
    """A published model by its id."""

    @cache
    def load(name: str) -> Architectures:
        content = shipped("search_spaces.models", name)
        return one({key: value for key, value in content.items() if key not in ("name", "source")})

    return load


@pytest.fixture(scope="session")
def paper_architectures(shipped: Callable[[str, str], dict[str, Any]]) -> Architectures:
    """All 13,120 architectures of `paper`, in genotype order."""
    space = SearchSpace.from_mapping(shipped("search_spaces.spaces", "paper"))
    return space.architectures(np.concatenate(list(space.enumerate())))


@dataclass(frozen=True)
class Case:
    """A setting that the product reads as a `Scenario` and the oracle as its own `Setting`."""

    law: Law
    device: Device
    oracle: ModuleType
    precision: str = "fp16"
    group_size: int | None = None
    calibration: Calibration | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def but(self, **changes: Any) -> "Case":
        """The same case with other fields or options."""
        own = {name: changes.pop(name) for name in list(changes) if name in Case.__dataclass_fields__}
        return replace(self, **own, options=self.options | changes)

    @property
    def scenario(self) -> Scenario:
        """As the product takes it."""
        chosen = precision(self.precision, self.group_size)
        training = Training(device=self.device)
        return Scenario(self.law, self.device, chosen, calibration=self.calibration, training=training, **self.options)

    @property
    def setting(self) -> Any:
        """As the oracle takes it."""
        factors = self.calibration or Calibration()
        base, *variations = self.precision.split("_")
        return self.oracle.Setting(
            fp16_peak=self.device.fp16,
            int8_peak=self.device.int8,
            bandwidth=self.device.bandwidth,
            precision=base,
            kv_bits=next((int(name[2:]) for name in variations if name.startswith("kv")), None),
            down_inputs_of_8_bits="down8" in variations,
            group_size=self.group_size,
            compute_efficiency_fp16=factors.compute_efficiency,
            compute_efficiency_int8=factors.compute_efficiency_int8 or factors.compute_efficiency,
            bandwidth_efficiency=factors.bandwidth_efficiency,
            overhead_s=factors.overhead / 1e3,
            fp4_peak=self.device.other_peaks.get("fp4", 0.0),
            compute_efficiency_fp4=factors.compute_efficiency_fp4 or factors.compute_efficiency,
            prefill_bandwidth_efficiency=factors.prefill_bandwidth_efficiency,
            prefill_overhead_s=None if factors.prefill_overhead is None else factors.prefill_overhead / 1e3,
            attention_compute=factors.attention_compute,
            attention_bandwidth=factors.attention_bandwidth,
            decode_attention_compute=factors.decode_attention_compute,
            decode_compute=factors.decode_compute,
            batched_compute=factors.batched_compute,
            scan_compute=factors.scan_compute,
            expert_compute=factors.expert_compute,
            expert_bandwidth=factors.expert_bandwidth,
            routing_overlap=factors.routing_overlap,
            cache=self.device.cache or 0.0,
            cache_bandwidth=self.device.cache_bandwidth or 0.0,
            cache_efficiency=factors.cache_efficiency,
            **self.options,
        )


@pytest.fixture(scope="session")
def case(law: Law, device: Callable[[str], Device], reference: ModuleType) -> Case:
    """The paper's setting: AGX Orin 64 GB, fp16, workload 1/1024/16."""
    return Case(law, device(ORIN), reference)


@pytest.fixture(scope="session")
def devices(device: Callable[[str], Device]) -> list[Device]:
    """Every shipped device in every one of its power modes."""
    plain = [device(name) for name in documents("objectives.devices")]
    return plain + [each.in_mode(mode) for each in plain for mode in each.modes]


@pytest.fixture(scope="session")
def cases(case: Case, devices: list[Device]) -> st.SearchStrategy[Case]:
    """Any setting of the operator model: precision, groups, workload, options, calibration, device."""
    figures = st.floats(1e9, 1e16)
    invented = st.builds(
        lambda fp16, int8, bandwidth, faster, cache: Device(
            name="invented", fp16=fp16 / 1e12, int8=int8 / 1e12, bandwidth=bandwidth / 1e9, memory=8, cache=cache / 1e9, cache_bandwidth=faster * bandwidth / 1e9
        ),
        figures, figures, st.floats(1e8, 1e14), st.floats(1.0, 20.0), st.floats(1e6, 1e10),
    )  # fmt: skip
    calibrations = st.builds(
        Calibration,
        compute_efficiency=st.floats(0.05, 1.0),
        compute_efficiency_int8=st.none() | st.floats(0.05, 1.0),
        bandwidth_efficiency=st.floats(0.05, 1.0),
        overhead=st.sampled_from([0.0, 0.005, "5 us", "0.3 ms"]),
        prefill_bandwidth_efficiency=st.none() | st.floats(0.05, 1.0),
        prefill_overhead=st.sampled_from([None, 0.0, "20 us"]),
        attention_compute=st.floats(0.1, 1.0),
        attention_bandwidth=st.floats(0.1, 1.0),
        decode_attention_compute=st.none() | st.floats(0.001, 1.0),
        expert_compute=st.floats(0.1, 1.0),
        expert_bandwidth=st.floats(0.1, 1.0),
        routing_overlap=st.sampled_from([0.0, 0.45, 0.9]),
        cache_efficiency=st.none() | st.floats(0.3, 1.0),
    )
    return st.builds(
        case.but,
        device=st.sampled_from(devices) | invented,
        precision=st.sampled_from(["fp16", "int8", "int4"]),
        group_size=st.none() | st.sampled_from([1, 32, 64, 128, 1000]),
        calibration=st.none() | calibrations,
        batch=st.integers(1, 8),
        input_tokens=st.integers(1, 4096),
        output_tokens=st.integers(1, 300),
        attention=st.sampled_from(["unfused", "fused"]),
        causal=st.booleans(),
        complete=st.booleans(),
        head_bytes=st.sampled_from([2.0, 1.0, 0.5, 4.0]),
    )


@pytest.fixture(scope="session")
def random_architectures() -> Callable[..., Architectures]:
    """`(n, seed, plain=False, kinds=False)`: architectures outside any space.

    Plain ones suit the closed form; `kinds`: layers of every kind.
    """

    def draw(n: int, seed: int, *, plain: bool = False, kinds: bool = False) -> Architectures:
        generator = np.random.default_rng(seed)
        head_dim = generator.choice([32, 64, 96, 128, 256], n)
        n_kv, gqa = generator.integers(1, 9, n), generator.integers(1, 9, n)
        experts = np.where(generator.random(n) < 0.3, 1, generator.integers(2, 65, n))
        deep = generator.random(n) < 0.02
        columns: dict[str, Any] = {
            "depth": np.where(deep, generator.integers(1, 129, n), generator.integers(1, 4, n)),
            "width": head_dim * n_kv * gqa if plain else generator.integers(1, 4097, n),
            "head_dim": head_dim,
            "n_heads": n_kv * gqa,
            "n_kv_heads": n_kv,
            "n_experts": experts,
            "top_k": 1 + (generator.random(n) * np.minimum(experts - 1, 9)).astype(int),
            "expert_size": generator.integers(1, 8193, n),
        }
        if not plain:
            columns |= {
                "shared_expert_size": np.where(generator.random(n) < 0.5, 0, generator.integers(1, 4097, n)),
                "shared_gate": generator.random(n) < 0.5,
                "qk_norm": generator.choice(QK_NORMS, n),
                "qkv_bias": generator.random(n) < 0.5,
                "norms_per_layer": generator.integers(1, 5, n),
                "tied": generator.random(n) < 0.5,
                "vocabulary": np.where(generator.random(n) < 0.5, 0, generator.integers(1, 200_000, n)),
            }
        if kinds:
            columns |= layer_kinds(generator, columns["n_experts"])
        return Architectures.from_columns(columns)

    return draw


def layer_kinds(generator: np.random.Generator, experts: Any) -> dict[str, Any]:
    """Columns of depth and of every layer kind, each in about two rows of three, with a cache for those that share one."""
    n = len(experts)
    some = {name: generator.random(n) < 0.65 for name in ("local", "linear", "conv", "dense", "shared")}
    local, linear, conv = (np.where(some[name], generator.integers(1, 4, n), 0) for name in ("local", "linear", "conv"))
    full = np.where(local + linear + conv > 0, generator.integers(0, 4, n), generator.integers(1, 4, n))
    full_shared = np.where(some["shared"], generator.integers(0, np.maximum(full, 1)), 0)
    local_shared = np.where(some["shared"], generator.integers(0, np.maximum(local, 1)), 0)
    depth, keys, deltanet = full + local + linear + conv, generator.integers(1, 9, n), generator.random(n) < 0.5
    dense = np.where(some["dense"], generator.integers(0, depth), 0)
    return {
        "depth": depth,
        "n_local": local,
        "window": np.where(local > 0, generator.choice([1, 3, 100, 512, 1024, 1030, 4096], n), 0),
        "n_kv_shared": full_shared + local_shared,
        "n_kv_shared_local": local_shared,
        "n_linear": linear,
        "linear_kind": np.where(linear > 0, np.where(deltanet, "deltanet", "mamba2"), "no"),
        "linear_heads": np.where(linear > 0, keys * generator.integers(1, 5, n), 0),
        "linear_key_heads": np.where(linear > 0, keys, 0),
        "linear_key_dim": np.where(linear > 0, generator.choice([64, 96, 128], n), 0),
        "linear_value_dim": np.where(linear > 0, generator.choice([32, 64, 128], n), 0),
        "linear_kernel": np.where(linear > 0, generator.integers(1, 5, n), 0),
        "n_conv": conv,
        "conv_kernel": np.where(conv > 0, generator.integers(1, 5, n), 0),
        "n_dense": dense,
        "dense_size": np.where(dense > 0, generator.integers(1, 8193, n), 0),
        "attention_gate": generator.random(n) < 0.5,
        "further_parameters": np.where(generator.random(n) < 0.5, 0, generator.integers(1, 10**9, n)),
        "table_parameters": np.where(generator.random(n) < 0.5, 0, generator.integers(1, 10**9, n)),
        "ungated_ffn": generator.random(n) < 0.3,
    }


@pytest.fixture(scope="session")
def as_reference(reference: ModuleType) -> Callable[[Architectures], list[Any]]:
    """The oracle's scalar architectures of a batch; formats, tokens and how a design is served are no part of the oracle."""
    names = [name for name in (*SHAPE, *DEFAULTS) if name not in (*NOT_OF_A_MODEL, "layers")]

    def convert(architectures: Architectures) -> list[Any]:
        columns = {name: worded(name, getattr(architectures, name)).tolist() for name in names}
        return [reference.Arch(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    return convert
