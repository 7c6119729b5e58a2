"""The mixers of a space: the few ways in which a layer of its designs mixes tokens, however many designs there are."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from search_spaces.arrays import IntArray, frozen
from search_spaces.space import SearchSpace

SIZES = ("window", "linear_kind", "conv_kernel")  # of layer kinds, what says how a layer is and not how many there are


@dataclass(frozen=True, eq=False)
class Mixers:
    """Mixers numbered by kind, frame (width, head_dim, n_heads) and KV heads; plans (depth, layers) say how many layers have which.

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
        """A design with each mixer, then one of each plan, (mixers + plans, g)."""
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
        """The mixer and the plan of each canonical genotype, each (n,)."""
        space = self.space
        frame, plan = space.frame_of(genotypes), space.plan_of(genotypes)
        rank = space.kv_gene.rank[space.frame_heads[frame], genotypes[:, space.place["n_kv_heads"]]]
        return self._plans_by_kind[1][plan] * self._start[-1] + self._start[frame] + rank, plan
