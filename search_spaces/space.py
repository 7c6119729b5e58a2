"""A discrete search space: canonical integer genotypes, one per architecture, and its few distinct mixers."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray, brief, frozen
from search_spaces.axes import DEPTH, Axes, DependentGene, position, position_in_rows
from search_spaces.columns import NOT_OF_A_MODEL, SHAPE, worded
from search_spaces.layer_kinds import KIND_DEFAULTS
from search_spaces.specification import OF_LAYERS, SpaceSpecification

WRITTEN = 50_000  # genotypes, valid or not, whose keys are kept: as long to find as those of some ten batches


@brief
@dataclass(frozen=True, eq=False)
class SearchSpace(Axes):
    """Architectures numbered 0 … size − 1 in the order of their genotypes.

    A genotype holds g genes (`genes`: six, besides those of layers, heads and settings), each an index into its axis in
    order. Settings (tokens) come last and go with every architecture, which counts once for each. Which layers are valid
    depends on depth alone, which top_k on n_experts, which FFN values on width, which heads on width, and which KV heads
    on the number of heads, so every question (decode, key, count, sampling) is arithmetic on small tables.
    """

    @classmethod
    def from_mapping(cls, mapping: dict[str, Any]) -> "SearchSpace":
        """Return a space from its YAML content.

        Args:
            mapping: name, axes, conditions, as in the YAML file.

        Raises:
            pydantic.ValidationError: each fault with its path.
        """
        return cls(SpaceSpecification.model_validate(mapping))

    @property
    def name(self) -> str:
        """The space's name."""
        return self.specification.name

    @cached_property
    def _pairs(self) -> IntArray:
        """Valid (n_experts, top_k) genes in order, (pairs, 2)."""
        return frozen(np.argwhere(self.top_k_gene.valid))

    @cached_property
    def counts_per_frame(self) -> IntArray:
        """Number of architectures of one plan (depth, layers) per frame (width, head_dim, n_heads), exact, (frames,)."""
        sizes, kvs = self.ffn_gene.counts[self.frames[:, 0]], self.kv_gene.counts[self.frame_heads]
        return frozen(len(self._pairs) * sizes * kvs)

    @cached_property
    def _frame_start(self) -> IntArray:
        return frozen(np.cumsum(self.counts_per_frame) - self.counts_per_frame)

    @cached_property
    def _per_plan(self) -> int:
        return int(self.counts_per_frame.sum())

    @property
    def size(self) -> int:
        """Number of distinct architectures, each with every setting, exact."""
        return self._per_plan * len(self.layer_plans) * self.n_settings

    def genotypes(self, keys: IntArray) -> IntArray:
        """Return genotypes (n, g) for keys in [0, size).

        Args:
            keys: (n,), each in [0, size).
        """
        keys, setting = np.divmod(keys, self.n_settings)
        plan, rest = np.divmod(keys, self._per_plan)
        depth, layers = self.layer_plans[plan].T
        frame = np.searchsorted(self._frame_start, rest, side="right") - 1
        width, heads = self.frames[frame, 0], self.frame_heads[frame]
        rest = rest - self._frame_start[frame]
        rest, kv_rank = np.divmod(rest, self.kv_gene.counts[heads])
        pair, ffn_rank = np.divmod(rest, self.ffn_gene.counts[width])
        experts, top_k = self._pairs[pair].T
        ffn, kv = self.ffn_gene.nth[width, ffn_rank], self.kv_gene.nth[heads, kv_rank]
        ffns = {"n_experts": experts, "top_k": top_k, "ffn": ffn}
        settings = {}
        if self.settings:  # the last axis turns first
            genes = np.unravel_index(setting, [len(values) for values in self.settings.values()])
            settings = dict(zip(self.settings, genes, strict=True))
        return self.composed(frame, depth=depth, layers=layers, **ffns, n_kv_heads=kv, **settings)

    @cached_property
    def _ffn_and_kv(self) -> slice:
        """The columns of n_experts, top_k, FFN and KV heads."""
        return slice(self.place["n_experts"], self.place["n_kv_heads"] + 1)

    def keys(self, genotypes: IntArray) -> IntArray:
        """Return the position of each canonical genotype in the space's order, (n,), in [0, size).

        Args:
            genotypes: canonical, (n, g).
        """
        rows = genotypes.astype(np.int64, copy=False)
        frame = self.frame_of(rows)
        width = rows[:, self.place["width"]]
        experts, top_k, ffn, kv = rows[:, self._ffn_and_kv].T
        heads = self.frame_heads[frame]
        within = self.top_k_gene.number[experts, top_k] * self.ffn_gene.counts[width] + self.ffn_gene.rank[width, ffn]
        within = within * self.kv_gene.counts[heads] + self.kv_gene.rank[heads, kv]
        keys: IntArray = self.plan_of(rows) * self._per_plan + self._frame_start[frame] + within
        for name, values in self.settings.items():
            keys = keys * len(values) + rows[:, self.place[name]]
        return keys

    def plan_of(self, genotypes: IntArray) -> IntArray:
        """Return the row of `layer_plans` of each canonical genotype, (n,)."""
        plan: IntArray = self.layers_gene.number[genotypes[:, DEPTH], self._layers(genotypes)]
        return plan

    def _layers(self, genotypes: IntArray) -> IntArray | int:
        """The gene of layers, (n,); 0 where it is no axis."""
        return genotypes[:, self.place[OF_LAYERS]] if self.mixed else 0

    def is_canonical(self, genotypes: IntArray) -> BoolArray:
        """Return True for each row, (n, g), that is an architecture's genotype."""
        inside = ((genotypes >= 0) & (genotypes < self.gene_sizes)).all(axis=1)
        valid: BoolArray = inside & (self.repair(genotypes) == genotypes).all(axis=1)
        return valid

    def repair(self, genotypes: IntArray) -> IntArray:
        """Return canonical genotypes, (n, g): an invalid value becomes the next smaller valid one.

        Only layers, top_k, FFN, heads and n_kv_heads depend on other genes. A value without a smaller valid one
        becomes the smallest valid; n_heads where it equals a listed value becomes that value.
        Values outside an axis move to its nearest end.

        Args:
            genotypes: integers of any size, (n, g).
        """
        repaired = np.minimum(np.maximum(np.asarray(genotypes, dtype=np.int64), 0), self.gene_sizes - 1)
        for gene, table in self._dependent.items():
            values, column = self.repaired_kv if gene == "n_kv_heads" else table.repaired, self.place[gene]
            repaired[:, column] = values[self._owner(gene, repaired), repaired[:, column]]
        return repaired

    def canonical(self, genotypes: IntArray) -> tuple[IntArray, IntArray]:
        """Return the canonical form of any integer rows, (n, g), and their keys, (n,); small spaces use a table."""
        if self._canonical_of_each is None:
            repaired = self.repair(genotypes)
            return repaired, self.keys(repaired)
        rows, keys = self._canonical_of_each
        written = np.ravel_multi_index(tuple(genotypes.T), self._shape, mode="clip")
        return rows[written], keys[written]

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return tuple(self.gene_sizes.tolist())

    @cached_property
    def _canonical_of_each(self) -> tuple[IntArray, IntArray] | None:
        """The canonical form and key of each genotype that can be written, valid or not, in order; None of more than `WRITTEN`."""
        if (written := math.prod(self._shape)) > WRITTEN:
            return None
        every = np.stack(np.unravel_index(np.arange(written), self._shape), axis=1)
        repaired = self.repair(every)
        return frozen(repaired), frozen(self.keys(repaired))

    @cached_property
    def _dependent(self) -> dict[str, DependentGene]:
        """The tables of the genes that depend on others, each after those that it depends on."""
        valid = self._heads.valid
        sizes = DependentGene.from_mask(np.logical_or.reduce(valid, axis=2))
        heads = DependentGene.from_mask(valid.reshape(-1, valid.shape[2]))  # a row per width and head size
        tables = {"head_dim": sizes, "n_heads": heads, "n_kv_heads": self.kv_gene}
        every = {OF_LAYERS: self.layers_gene, "top_k": self.top_k_gene, "ffn": self.ffn_gene, **tables}
        return {gene: table for gene, table in every.items() if gene in self.place}

    def _owner(self, gene: str, genotypes: IntArray) -> IntArray:
        """The row of a dependent gene's tables for each genotype, (n,)."""
        if gene == OF_LAYERS:
            return genotypes[:, DEPTH]
        if gene == "top_k":
            return genotypes[:, self.place["n_experts"]]
        if gene == "n_kv_heads":
            return self.frame_heads[self.frame_of(genotypes)]
        width = genotypes[:, self.place["width"]]
        if gene != "n_heads":
            return width
        size = genotypes[:, self.place["head_dim"]] if "head_dim" in self.place else 0
        return width * len(self.head_dims) + size

    def architectures(self, genotypes: IntArray) -> Architectures:
        """Return the architectures of canonical genotypes (n, g).

        Args:
            genotypes: canonical, (n, g).
        """
        frame, (experts, top_k, ffn, kv) = self.frame_of(genotypes), genotypes[:, self._ffn_and_kv].T
        (width, size, _), heads = self.frames[frame].T, self.frame_heads[frame]
        depth, layers = genotypes[:, DEPTH], self._layers(genotypes)
        return Architectures.from_shape(
            {
                "depth": self.depths[depth],
                **(self.mixes.at(depth, layers, self.widths[width]) if self.mixed else {}),
                "width": self.widths[width],
                "head_dim": self.head_dims[size],
                "n_heads": self.heads[heads],
                "n_kv_heads": self.kv_values[heads, kv],
                "n_experts": self.experts[experts],
                "top_k": self.top_ks[top_k],
                "expert_size": self.expert_sizes[width, ffn],
                **{name: values[genotypes[:, self.place[name]]] for name, values in self.settings.items()},
            }
        )

    def enumerate(self, chunk: int = 65_536) -> Iterator[IntArray]:
        """Yield all genotypes in order, in blocks of at most `chunk` rows.

        Args:
            chunk: rows of a block.
        """
        for start in range(0, self.size, chunk):
            yield self.genotypes(np.arange(start, min(start + chunk, self.size)))

    @property
    def examples(self) -> dict[str, IntArray]:
        """Return genotypes (k, g) that cover each layer rule and each value of each setting, by axis.

        First, of "", the space's first design, of which the settings' are variants, and those of fewest and most query features per width.
        """
        features = self.head_dims[self.frames[:, 1]] * self.heads[self.frame_heads] / self.widths[self.frames[:, 0]]
        ends = self._frame_start[np.array([0, np.argmin(features), np.argmax(features)])]
        found = {"": self.genotypes(ends * self.n_settings)}
        if self.mixed:
            _, plans = np.unique(self.layer_plans[:, 1], return_index=True)
            found[OF_LAYERS] = self.genotypes(plans * self._per_plan * self.n_settings)
        for name, values in self.settings.items():
            found[name] = np.repeat(found[""][:1], len(values), axis=0)
            found[name][:, self.place[name]] = np.arange(len(values))
        return found

    def sample(self, n: int, generator: np.random.Generator) -> IntArray:
        """Return min(n, size) distinct random genotypes, uniform without replacement.

        Args:
            n: designs.
            generator: the source of randomness.
        """
        return self.genotypes(generator.choice(self.size, size=min(n, self.size), replace=False))

    def spread(self, points: FloatArray) -> IntArray:
        """Return genotypes (n, g) for points (n, g) in [0, 1): equal shares of each gene's valid values, no repair needed.

        Args:
            points: (n, g), in [0, 1).
        """
        genotypes = (points * self.gene_sizes).astype(np.int64)
        for gene, table in self._dependent.items():
            rows, column = self._owner(gene, genotypes), self.place[gene]
            rank = (points[:, column] * table.counts[rows]).astype(np.int64)
            genotypes[:, column] = table.nth[rows, rank]
        return genotypes

    def neighbours(self, genotypes: IntArray, share: FloatArray | float = 0.0) -> IntArray:
        """Return the distinct architectures one step along one axis from any given one, in key order.

        A step goes over `share` (of each row or of all) of a gene's valid values, rounded down but
        to one at least, and ends at the last of them; genes that depend on it are repaired. The
        given architectures themselves are left out.

        Args:
            genotypes: canonical, (n, g).
            share: of the valid values, in [0, 1], one or (n,).
        """
        steps = [self._step(genotypes, gene, sign, share) for gene in range(len(self.genes)) for sign in (-1, 1)]
        keys = np.unique(np.concatenate([self.keys(step) for step in steps]))
        return self.genotypes(np.setdiff1d(keys, self.keys(genotypes), assume_unique=False))

    def neighbours_of_each(self, genotypes: IntArray) -> tuple[IntArray, IntArray]:
        """Return the neighbours of every row: the row index of each, (k,), and the neighbours, (k, g), in key order per row."""
        own = self.keys(genotypes)
        steps = [self._step(genotypes, gene, sign, 0.0) for gene in range(len(self.genes)) for sign in (-1, 1)]
        owner = np.tile(np.arange(len(own)), len(steps))
        keys = np.concatenate([self.keys(step) for step in steps])
        pairs = np.unique(np.stack([owner, keys], axis=1)[keys != own[owner]], axis=0)
        return pairs[:, 0], self.genotypes(pairs[:, 1])

    def _step(self, genotypes: IntArray, gene: int, sign: int, share: FloatArray | float) -> IntArray:
        moved = genotypes.copy()
        table = self._dependent.get(self.genes[gene])
        if table is not None:
            rows = self._owner(self.genes[gene], genotypes)
            counts = table.counts[rows]
            rank = np.clip(table.rank[rows, genotypes[:, gene]] + sign * _stride(share, counts), 0, counts - 1)
            moved[:, gene] = table.nth[rows, rank]
        else:
            size = self.gene_sizes[gene]
            moved[:, gene] = np.clip(genotypes[:, gene] + sign * _stride(share, size), 0, size - 1)
        return self.repair(moved)

    def find(self, architectures: Architectures) -> IntArray:
        """Return the key of each architecture, (n,); −1 if it is not in the space. Tokens and precision without an axis are ignored.

        Args:
            architectures: of any origin, (n,).
        """
        a, width = architectures, position(self.widths, architectures.width)
        found, frame = self.found_frame(a, width)
        heads, safe = self.frame_heads[frame], np.maximum(width, 0)
        depth = position(self.depths, a.depth)
        genes = {
            "depth": depth,
            **({OF_LAYERS: self.mixes.find(np.maximum(depth, 0), a)} if self.mixed else {}),
            "n_experts": position(self.experts, a.n_experts),
            "top_k": position(self.top_ks, a.top_k),
            "ffn": position_in_rows(self.expert_sizes[safe], self.ffn_gene.valid[safe], a.expert_size),
            "n_kv_heads": position_in_rows(self.kv_values[heads], self.kv_gene.valid[heads], a.n_kv_heads),
            **{name: position(values, getattr(a, name)) for name, values in self.settings.items()},
        }
        genotypes = self.composed(frame, **genes)
        found &= (genotypes >= 0).all(axis=1)
        passed_over = {"vocabulary", "tied", *NOT_OF_A_MODEL, *self.settings}
        passed_over |= {*KIND_DEFAULTS, "qk_norm", "norms_per_layer"} if self.mixed else set()
        for name in architectures.further_columns().keys() - passed_over:
            found &= np.asarray(getattr(architectures, name) == getattr(_DEFAULT_ROW, name)[0])
        found[found] = self.is_canonical(genotypes[found])
        keys = np.full(len(genotypes), -1)
        keys[found] = self.keys(genotypes[found])
        return keys

    @property
    def dense(self) -> "SearchSpace | None":
        """Return the space of its dense architectures; None if it has none."""
        if self.experts[0] != 1 or self.top_ks[0] != 1:
            return None
        content = self.mapping()
        content["axes"] |= {"n_experts": [1], "top_k": [1]}
        return SearchSpace.from_mapping(content)

    def at(self, setting: Mapping[str, int]) -> "SearchSpace":
        """Return the space with one value for each of these settings."""
        axes = {name: worded(name, np.array([value])).tolist() for name, value in setting.items()}
        specification = self.specification
        return SearchSpace(specification.model_copy(update={"axes": specification.axes.model_copy(update=axes)}))

    @property
    def on_one_device(self) -> "SearchSpace":
        """Return the same space without an axis of devices."""
        axes = self.specification.axes.model_copy(update={"device": None})
        return SearchSpace(self.specification.model_copy(update={"axes": axes}))

    def mapping(self) -> dict[str, Any]:
        """Return the space as YAML content, fully resolved."""
        return self.specification.model_dump(mode="json", by_alias=True, exclude_none=True)

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the space's content: axes, conditions and head size, not its name."""
        content = {k: v for k, v in self.mapping().items() if k not in ("name", "description")}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _stride(share: FloatArray | float, values: IntArray) -> IntArray:
    return np.maximum(1, np.floor(share * values)).astype(np.int64)


_DEFAULT_ROW = Architectures.from_shape({name: np.ones(1, dtype=np.int64) for name in SHAPE})


SIZES = ("window", "linear_kind", "conv_kernel")  # of layer kinds, what says how a layer is and not how many there are


@dataclass(frozen=True, eq=False)
class Mixers:
    """Mixers numbered by kind, frame (width, head_dim, n_heads) and KV heads; plans (depth, layers) count the layers of each.

    A kind is what the plans with the same window, linear attention and kernel have in common.
    """

    space: SearchSpace

    @cached_property
    def _plans_by_kind(self) -> tuple[IntArray, IntArray]:
        """A plan of each kind, (kinds,), and the kind of each plan, (plans,)."""
        depth, layers = self.space.layer_plans.T
        sizes = np.stack([self.space.mixes.columns[name][depth, layers] for name in SIZES], axis=1)
        _, first, kind = np.unique(sizes, axis=0, return_index=True, return_inverse=True)
        return first, kind.reshape(-1)

    @cached_property
    def _start(self) -> IntArray:
        """The first of each frame's mixers of a kind, and last how many there are, (frames + 1,)."""
        counts = self.space.kv_gene.counts[self.space.frame_heads]
        return frozen(np.concatenate([[0], np.cumsum(counts)]))

    def __len__(self) -> int:
        return len(self._plans_by_kind[0]) * int(self._start[-1])

    def designs(self) -> IntArray:
        """Return a design with each mixer, then one of each plan, (mixers + plans, g)."""
        first, kind = self._plans_by_kind
        mixer, of_a_kind = np.arange(len(self)), int(self._start[-1])
        frame = np.searchsorted(self._start, mixer % of_a_kind, side="right") - 1
        rank = mixer % of_a_kind - self._start[frame]
        plan = np.concatenate([first[mixer // of_a_kind], np.arange(len(kind))])
        none = np.zeros(len(kind), dtype=np.int64)
        return self._composed(plan, np.concatenate([frame, none]), np.concatenate([rank, none]))

    def _composed(self, plan: IntArray, frame: IntArray, rank: IntArray) -> IntArray:
        """The first design of each plan, frame and rank among the frame's KV heads."""
        space = self.space
        depth, layers = space.layer_plans[plan].T
        first = space.genotypes(np.zeros(1, dtype=np.int64))[0]
        genes = {name: np.full(len(plan), first[space.place[name]]) for name in ("n_experts", "top_k")}
        ffn = space.ffn_gene.nth[space.frames[frame, 0], 0]
        kv = space.kv_gene.nth[space.frame_heads[frame], rank]
        return space.composed(frame, depth=depth, layers=layers, **genes, ffn=ffn, n_kv_heads=kv)

    def of(self, genotypes: IntArray) -> tuple[IntArray, IntArray]:
        """Return the mixer and the plan of each canonical genotype, each (n,)."""
        space = self.space
        frame, plan = space.frame_of(genotypes), space.plan_of(genotypes)
        rank = space.kv_gene.rank[space.frame_heads[frame], genotypes[:, space.place["n_kv_heads"]]]
        return self._plans_by_kind[1][plan] * self._start[-1] + self._start[frame] + rank, plan
