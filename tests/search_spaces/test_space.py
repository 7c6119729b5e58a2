"""Search spaces against a brute-force definition, and the model page's counts."""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from search_spaces.architectures import Architectures, one
from search_spaces.columns import SHAPE
from search_spaces.space import SearchSpace
from search_spaces.specification import GENES

Genotype = tuple[int, ...]
TOP_K, FFN, KV = GENES.index("top_k"), GENES.index("ffn"), GENES.index("n_kv_heads")
SHARES = st.sampled_from([0.0, 0.125, 0.34, 0.5, 1.0])


class Row(NamedTuple):
    """What distinguishes two architectures of a space."""

    depth: int
    width: int
    n_experts: int
    top_k: int
    expert_size: int
    n_kv_heads: int


class BruteForce:
    """A space as the model page defines it: every combination tried, in plain Python."""

    def __init__(self, mapping: dict[str, Any]) -> None:
        axes, conditions = mapping["axes"], mapping.get("conditions", {})
        self.head_dim: int = mapping["head_dim"]
        self.depth, self.width = sorted(axes["depth"]), sorted(axes["width"])
        self.n_experts, self.top_k = sorted(axes["n_experts"]), sorted(axes["top_k"])
        self.by_ratio = "expert_ffn_ratio" in axes
        self.ffn: list[float] = sorted(axes["expert_ffn_ratio" if self.by_ratio else "expert_size"])
        self.kv = self._kv_axis(axes["n_kv_heads"])
        self.max_ratio: float = conditions.get("max_expert_ffn_ratio", float("inf"))
        self.max_rate: float = conditions.get("max_activation_rate", 1.0)
        self.min_top_k: int = conditions.get("min_top_k", 1)

    def _kv_axis(self, given_axis: Any) -> list[Any]:
        if given_axis == "divisors":
            largest = max(self.width) // self.head_dim
            return [k for k in range(1, largest + 1) if any((w // self.head_dim) % k == 0 for w in self.width)]
        return sorted(k for k in given_axis if k != "n_heads") + [k for k in given_axis if k == "n_heads"]

    def size_of(self, width: int, ffn: float) -> int:
        """m."""
        return round(ffn * width) if self.by_ratio else int(ffn)

    def kv_of(self, width: int, kv: Any) -> int:
        """n_kv, with the symbol resolved."""
        return width // self.head_dim if kv == "n_heads" else int(kv)

    def pair(self, experts: int, top_k: int) -> bool:
        """K < E within the limits, or E = K = 1."""
        within = self.min_top_k <= top_k < experts and top_k / experts <= self.max_rate + 1e-12
        return experts == top_k == 1 or within

    def fits(self, width: int, ffn: float) -> bool:
        """Whether the expert is small enough."""
        return self.size_of(width, ffn) <= self.max_ratio * width + 1e-9

    def divides(self, width: int, kv: Any) -> bool:
        """Whether the KV heads divide the heads."""
        return (width // self.head_dim) % self.kv_of(width, kv) == 0

    @property
    def is_empty_somewhere(self) -> bool:
        """Whether some E has no K, or some width no expert or no KV heads."""
        return (
            any(not any(self.pair(e, k) for k in self.top_k) for e in self.n_experts)
            or any(not any(self.fits(w, f) for f in self.ffn) for w in self.width)
            or any(not any(self.divides(w, k) for k in self.kv) for w in self.width)
        )

    def rows(self) -> list[Row]:
        """Every valid architecture, once, ascending."""
        found = {
            Row(depth, width, experts, top_k, self.size_of(width, ffn), self.kv_of(width, kv))
            for depth, width, experts, top_k, ffn, kv in itertools.product(
                self.depth, self.width, self.n_experts, self.top_k, self.ffn, self.kv
            )
            if self.pair(experts, top_k) and self.fits(width, ffn) and self.divides(width, kv)
        }
        return sorted(found)

    def repaired(self, genotype: Genotype) -> Genotype:
        """An invalid value of a dependent gene becomes the next smaller valid one, else the smallest."""
        depth, w, e, k, f, v = genotype
        width, experts = self.width[w], self.n_experts[e]
        top_k = _next_smaller(self.top_k, k, [self.pair(experts, each) for each in self.top_k])
        sizes = [self.size_of(width, each) for each in self.ffn]
        ffn = _next_smaller(sizes, f, [self.fits(width, each) for each in self.ffn])
        values = [self.kv_of(width, each) for each in self.kv]
        kv = _next_smaller(values, v, [self.divides(width, each) for each in self.kv])
        return depth, w, e, top_k, ffn, kv

    def canonical(self, genotype: Genotype) -> bool:
        """Whether repair leaves it as it is."""
        return self.repaired(genotype) == genotype

    def neighbours(self, genotype: Genotype, share: float = 0.0) -> set[Genotype]:
        """A share of one gene's valid values away, one value at least; what depends on the gene is repaired."""
        found = set()
        sizes = [len(axis) for axis in (self.depth, self.width, self.n_experts, self.top_k, self.ffn, self.kv)]
        for gene, sign in itertools.product(range(6), (-1, 1)):
            rows = [(*genotype[:gene], value, *genotype[gene + 1 :]) for value in range(sizes[gene])]
            if gene in (TOP_K, FFN, KV):
                rows = [row for row in rows if self.canonical(row)]
            place = rows.index(genotype) + sign * max(1, int(share * len(rows)))
            found.add(self.repaired(rows[min(max(place, 0), len(rows) - 1)]))
        return found - {genotype}


def _next_smaller(values: list[int], gene: int, valid: list[bool]) -> int:
    """Index of the largest valid value up to values[gene] (the first index that has it), else of the smallest."""
    allowed = sorted({value for value, good in zip(values, valid, strict=True) if good})
    below = [value for value in allowed if value <= values[gene]]
    return values.index(below[-1] if below else allowed[0])


def lists_of(values: st.SearchStrategy[int], most: int) -> st.SearchStrategy[list[int]]:
    """Distinct values in any order."""
    return st.lists(values, min_size=1, max_size=most, unique=True)


@st.composite
def mappings(draw: st.DrawFn) -> dict[str, Any]:
    """Small specifications, some of them impossible."""
    head_dim = draw(st.sampled_from([16, 64, 128]))
    axes: dict[str, Any] = {
        "depth": draw(lists_of(st.integers(1, 9), 3)),
        "width": [head_dim * heads for heads in draw(lists_of(st.integers(1, 16), 4))],
        "n_experts": draw(lists_of(st.sampled_from([1, 2, 3, 4, 8, 12]), 4)),
        "top_k": sorted({1, *draw(lists_of(st.integers(1, 5), 3))} - draw(st.sampled_from([set(), {1}]))) or [1],
        "n_kv_heads": draw(
            st.just("divisors")
            | st.tuples(lists_of(st.integers(1, 16), 4), st.sampled_from([[], ["n_heads"]])).map(lambda p: p[0] + p[1])
            | st.just(["n_heads"])
        ),
    }
    if draw(st.booleans()):
        axes["expert_size"] = draw(lists_of(st.integers(1, 64).map(lambda i: 8 * i), 6))
    else:
        axes["expert_ffn_ratio"] = draw(lists_of(st.sampled_from([0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 4]), 4))
    conditions = {}
    if draw(st.booleans()):
        conditions["max_expert_ffn_ratio"] = draw(st.sampled_from([0.5, 1, 2.5, 4]))
    if draw(st.booleans()):
        conditions["max_activation_rate"] = draw(st.sampled_from([0.25, 1 / 3, 0.5, 2 / 3, 1]))
    if draw(st.booleans()):
        conditions["min_top_k"] = draw(st.integers(1, 3))
    return {"head_dim": head_dim, "axes": axes, "conditions": conditions}


def built(mapping: dict[str, Any]) -> tuple[SearchSpace, BruteForce]:
    """A possible space and its definition."""
    brute = BruteForce(mapping)
    assume(not brute.is_empty_somewhere)
    return SearchSpace.from_mapping(mapping), brute


def everything(space: SearchSpace) -> np.ndarray[Any, Any]:
    """All genotypes of a small space."""
    return np.concatenate(list(space.enumerate()))


def rows_of(architectures: Architectures) -> list[Row]:
    """The rows as plain tuples."""
    return [Row(*row) for row in np.stack([getattr(architectures, name) for name in Row._fields], axis=1).tolist()]


@given(mapping=mappings())
def test_enumeration_is_the_brute_force_definition(mapping: dict[str, Any]) -> None:
    brute = BruteForce(mapping)
    if brute.is_empty_somewhere:
        with pytest.raises(ValidationError):
            SearchSpace.from_mapping(mapping)
        return
    space = SearchSpace.from_mapping(mapping)
    architectures = space.architectures(everything(space))
    assert rows_of(architectures) == brute.rows()
    assert space.size == len(brute.rows())
    assert set(architectures.head_dim.tolist()) == {mapping["head_dim"]}
    assert np.array_equal(architectures.n_heads * architectures.head_dim, architectures.width)


@given(mapping=mappings(), chunk=st.integers(1, 50))
def test_keys_and_genotypes_are_inverse_and_ordered(mapping: dict[str, Any], chunk: int) -> None:
    space, _ = built(mapping)
    assume(space.size <= 2000)
    genotypes = everything(space)
    assert np.array_equal(space.keys(genotypes), np.arange(space.size))
    assert np.array_equal(space.genotypes(np.arange(space.size)[::-1]), genotypes[::-1])
    assert genotypes.tolist() == sorted(genotypes.tolist())
    assert np.array_equal(np.concatenate(list(space.enumerate(chunk))), genotypes)
    assert all(len(block) <= chunk for block in space.enumerate(chunk))


@given(mapping=mappings())
def test_find_is_the_inverse_of_architectures(mapping: dict[str, Any]) -> None:
    space, brute = built(mapping)
    assert np.array_equal(space.find(space.architectures(everything(space))), np.arange(space.size))
    rows = set(brute.rows())
    tried = [
        Row(*row)
        for row in itertools.product(
            [*brute.depth[:1], 99],
            [*brute.width[:2], brute.head_dim * 17],
            [*brute.n_experts[:2], 40],
            [1, 2],
            [brute.size_of(brute.width[0], brute.ffn[0]), 8, 999],
            [1, 2, brute.width[0] // brute.head_dim],
        )
        if (row[3] < row[2] or row[2] == row[3] == 1) and (row[1] // brute.head_dim) % row[5] == 0
    ]
    columns = {name: [getattr(row, name) for row in tried] for name in Row._fields}
    found = space.find(Architectures.from_columns(columns | {"head_dim": brute.head_dim}))
    assert [key >= 0 for key in found.tolist()] == [row in rows for row in tried]
    inside = found[found >= 0]
    assert rows_of(space.architectures(space.genotypes(inside))) == [row for row in tried if row in rows]


@given(mapping=mappings(), seed=st.integers(0, 2**32 - 1))
def test_repair_gives_the_next_smaller_valid_value(mapping: dict[str, Any], seed: int) -> None:
    space, brute = built(mapping)
    raw = np.random.default_rng(seed).integers(0, space.gene_sizes, size=(60, 6))
    repaired = space.repair(raw)
    assert [tuple(row) for row in repaired.tolist()] == [brute.repaired(tuple(row)) for row in raw.tolist()]


@given(mapping=mappings(), seed=st.integers(0, 2**32 - 1))
def test_the_canonical_form_of_what_can_be_written_is_its_repair(mapping: dict[str, Any], seed: int) -> None:
    specification = built(mapping)[0].specification
    for most in (0, 10**9):  # by repair, by a table of all
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("search_spaces.space.WRITTEN", most)
            space = SearchSpace(specification)
            raw = np.random.default_rng(seed).integers(-3, space.gene_sizes + 3, (40, len(space.gene_sizes)))
            rows, keys = space.canonical(raw)
            assert rows.tolist() == space.repair(raw).tolist()
            assert keys.tolist() == space.keys(rows).tolist()


@given(mapping=mappings(), seed=st.integers(0, 2**32 - 1))
def test_repair_is_idempotent_canonical_and_touches_dependent_genes_alone(mapping: dict[str, Any], seed: int) -> None:
    space, brute = built(mapping)
    raw = np.random.default_rng(seed).integers(0, space.gene_sizes, size=(60, 6))
    given_rows = raw.copy()
    repaired = space.repair(raw)
    assert np.array_equal(raw, given_rows)
    assert np.array_equal(space.repair(repaired), repaired)
    assert space.is_canonical(repaired).all()
    assert np.array_equal(repaired[:, :3], raw[:, :3])
    assert np.array_equal(space.is_canonical(raw), (repaired == raw).all(axis=1))
    valid = space.is_canonical(raw)
    keys = space.keys(raw[valid])
    assert np.array_equal(space.genotypes(keys), raw[valid])
    assert set(rows_of(space.architectures(repaired))) <= set(brute.rows())


@given(mapping=mappings(), seed=st.integers(0, 2**32 - 1))
def test_repair_and_validity_do_not_depend_on_the_batch(mapping: dict[str, Any], seed: int) -> None:
    space, _ = built(mapping)
    raw = np.random.default_rng(seed).integers(0, space.gene_sizes, size=(20, 6))
    alone = np.concatenate([space.repair(row[None, :]) for row in raw])
    assert np.array_equal(space.repair(raw), alone)
    assert space.repair(raw[:0]).shape == (0, 6)


@given(mapping=mappings(), seed=st.integers(0, 2**32 - 1), share=SHARES)
def test_neighbours_are_one_step_of_a_share_of_the_valid_values_away(
    mapping: dict[str, Any], seed: int, share: float
) -> None:
    space, brute = built(mapping)
    for genotype in space.sample(5, np.random.default_rng(seed)):
        found = {tuple(row) for row in space.neighbours(genotype[None, :], share).tolist()}
        assert found == brute.neighbours(tuple(genotype.tolist()), share)


@given(mapping=mappings(), seed=st.integers(0, 2**32 - 1))
def test_neighbours_are_valid_never_self_and_mutual_without_repair(mapping: dict[str, Any], seed: int) -> None:
    space, _ = built(mapping)
    for genotype in space.sample(4, np.random.default_rng(seed)):
        found = space.neighbours(genotype[None, :])
        assert space.is_canonical(found).all()
        assert (np.diff(space.keys(found)) > 0).all()
        for other in found[(found != genotype).sum(axis=1) == 1]:
            assert (space.neighbours(other[None, :]) == genotype).all(axis=1).any()
        assert (found != genotype).any(axis=1).all()


@given(mapping=mappings(), seed=st.integers(0, 2**32 - 1), shares=st.lists(SHARES, min_size=6, max_size=6))
def test_neighbours_of_several_are_those_of_each_by_its_share_without_the_given(
    mapping: dict[str, Any], seed: int, shares: list[float]
) -> None:
    space, _ = built(mapping)
    several = space.sample(6, np.random.default_rng(seed))
    before = several.copy()
    found = {tuple(row) for row in space.neighbours(several, np.array(shares[: len(several)])).tolist()}
    pairs = zip(several, shares, strict=False)
    each = {tuple(row) for genotype, share in pairs for row in space.neighbours(genotype[None, :], share).tolist()}
    assert found == each - {tuple(row) for row in several.tolist()}
    assert np.array_equal(several, before)


@given(mapping=mappings(), seed=st.integers(0, 2**32 - 1), n=st.integers(0, 400))
def test_a_sample_is_distinct_exact_and_repeatable(mapping: dict[str, Any], seed: int, n: int) -> None:
    space, _ = built(mapping)
    sample = space.sample(n, np.random.default_rng(seed))
    assert len(sample) == min(n, space.size)
    assert space.is_canonical(sample).all()
    assert len(set(space.keys(sample).tolist())) == len(sample)
    assert np.array_equal(sample, space.sample(n, np.random.default_rng(seed)))


def test_a_sample_is_uniform_and_in_random_order(paper: SearchSpace) -> None:
    generator = np.random.default_rng(20)
    keys = np.concatenate([paper.keys(paper.sample(656, generator)) for _ in range(200)])
    counts = np.bincount(keys // 1312, minlength=10)
    assert counts.sum() == 656 * 200
    assert np.abs(counts / counts.sum() - 0.1).max() < 0.005  # six standard deviations
    assert not np.array_equal(keys[:656], np.sort(keys[:656]))
    assert not np.array_equal(keys[:656], keys[656:1312])


@given(mapping=mappings())
def test_a_space_reads_back_from_its_own_mapping(mapping: dict[str, Any]) -> None:
    space, _ = built(mapping)
    again = SearchSpace.from_mapping(space.mapping())
    assert again.fingerprint == space.fingerprint
    assert again.mapping() == space.mapping()
    assert np.array_equal(everything(again), everything(space))


def test_paper_has_13120_architectures_each_once(paper: SearchSpace) -> None:
    assert paper.size == 13_120
    rows = rows_of(paper.architectures(everything(paper)))
    assert len(set(rows)) == 13_120
    assert {(row.n_experts, row.top_k) for row in rows} == {(1, 1), (8, 1), (8, 2), (16, 1), (16, 2)}
    assert {row.depth for row in rows} == {4, 8, 12, 16, 20, 24, 28, 32}
    assert {row.width for row in rows} == {768, 1024, 1280, 1536, 1792, 2048, 2304, 2560, 3072}
    assert {row.expert_size / row.width for row in rows} == {0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4}
    for row in rows:
        heads = row.width // 64
        assert row.n_kv_heads in {kv for kv in (1, 2, 4, 8, heads) if heads % kv == 0}
    without_eight = {row.width // 64 for row in rows} - {row.width // 64 for row in rows if row.n_kv_heads == 8}
    assert without_eight == {12, 20, 28, 36}


def test_paper_is_its_brute_force_definition(paper: SearchSpace) -> None:
    mapping = {
        "head_dim": 64,
        "axes": {
            "depth": [4, 8, 12, 16, 20, 24, 28, 32],
            "width": [768, 1024, 1280, 1536, 1792, 2048, 2304, 2560, 3072],
            "n_experts": [1, 8, 16],
            "top_k": [1, 2],
            "expert_ffn_ratio": [0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4],
            "n_kv_heads": [1, 2, 4, 8, "n_heads"],
        },
    }
    assert rows_of(paper.architectures(everything(paper))) == BruteForce(mapping).rows()


def by_width(space: SearchSpace, widths: range, sizes: range) -> int:
    """Σ over widths of (expert sizes up to 4·width) · (divisors of n_h), in plain Python."""
    total = 0
    for width in widths:
        heads = width // 64
        divisors = sum(heads % kv == 0 for kv in range(1, heads + 1))
        total += sum(size <= 4 * width for size in sizes) * divisors
    assert total == int(space.counts_per_frame.sum()) // pairs_of(space)
    return total


def pairs_of(space: SearchSpace) -> int:
    """Valid (E, K)."""
    return sum(k < e or e == k == 1 for e in space.experts.tolist() for k in space.top_ks.tolist())


def test_fine_has_the_model_pages_count(fine: SearchSpace) -> None:
    assert fine.size == 1_268_202_600
    assert fine.size == 63 * pairs_of(fine) * by_width(fine, range(512, 4097, 64), range(32, 16_385, 32))


def test_huge_has_the_model_pages_count(huge: SearchSpace) -> None:
    assert huge.size == 1_502_920_036_352
    assert huge.size == 128 * pairs_of(huge) * by_width(huge, range(512, 8193, 64), range(8, 32_769, 8))


@pytest.mark.parametrize("name", ["fine", "huge"])
def test_large_spaces_number_their_architectures_exactly(name: str, request: pytest.FixtureRequest) -> None:
    space: SearchSpace = request.getfixturevalue(name)
    generator = np.random.default_rng(3)
    keys = np.concatenate([generator.integers(0, space.size, 2000), [0, space.size - 1]])
    genotypes = space.genotypes(keys)
    assert np.array_equal(space.keys(genotypes), keys)
    assert space.is_canonical(genotypes).all()
    architectures = space.architectures(genotypes)
    assert np.array_equal(space.find(architectures[:200]), keys[:200])
    assert (architectures.n_heads % architectures.n_kv_heads == 0).all()
    assert (architectures.expert_size <= 4 * architectures.width).all()
    dense = (architectures.n_experts == 1) & (architectures.top_k == 1)
    assert (dense | (architectures.top_k < architectures.n_experts)).all()
    last, first = architectures[-1:], architectures[-2:-1]
    assert rows_of(first)[0] == tuple(
        axis[0] for axis in (space.depths, space.widths, [1], [1], [space.expert_sizes[0, 0]], [1])
    )
    width = int(space.widths[-1])
    assert rows_of(last)[0] == (space.depths[-1], width, space.experts[-1], space.top_ks[-1], 4 * width, width // 64)
    sample = space.keys(space.sample(5000, generator))
    assert len(np.unique(sample)) == 5000
    assert sample.min() >= 0
    assert sample.max() < space.size
    assert sample.max() > 0.99 * space.size


def custom(**axes: Any) -> dict[str, Any]:
    """A space with heads of 128 as a user writes it."""
    base = {"depth": [2], "width": [512, 768, 1024], "expert_size": [64], "n_kv_heads": [1, 2, 4, 8, "n_heads"]}
    return {"head_dim": 128, "axes": base | axes}


def test_where_n_heads_equals_a_listed_value_the_smaller_index_counts() -> None:
    space = SearchSpace.from_mapping(custom())
    assert space.kv_values.tolist() == [[1, 2, 4, 8, 4], [1, 2, 4, 8, 6], [1, 2, 4, 8, 8]]
    kept = [[gene for gene in range(5) if space.is_canonical(np.array([[0, w, 0, 0, 0, gene]]))[0]] for w in range(3)]
    assert kept == [[0, 1, 2], [0, 1, 4], [0, 1, 2, 3]]
    alias = np.array([[0, 0, 0, 0, 0, 4], [0, 2, 0, 0, 0, 4]])
    assert space.repair(alias)[:, KV].tolist() == [2, 3]
    assert space.size == 3 + 3 + 4


def test_a_listed_value_above_n_heads_is_repaired_to_n_heads() -> None:
    """n_h = 6: the next valid value smaller than 8 is 6, though its index is the last."""
    space = SearchSpace.from_mapping(custom())
    repaired = space.repair(np.array([[0, 1, 0, 0, 0, 3]]))
    assert space.architectures(repaired).n_kv_heads.tolist() == [6]


def test_a_value_without_a_smaller_valid_one_becomes_the_smallest() -> None:
    space = SearchSpace.from_mapping(custom(n_kv_heads=[2, 3, 4], width=[384, 768], n_experts=[1, 4], top_k=[1, 2]))
    repaired = space.repair(np.array([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 2], [0, 1, 0, 1, 0, 2]]))
    assert space.architectures(repaired).n_kv_heads.tolist() == [3, 3, 3]
    assert space.architectures(repaired).top_k.tolist() == [1, 1, 1]


def test_values_outside_an_axis_move_to_its_nearest_end(paper: SearchSpace) -> None:
    raw = np.array([[-3, 99, 1, -1, 50, 99], [99, -1, 99, 9, -9, -9]])
    assert paper.repair(raw).tolist() == paper.repair(np.clip(raw, 0, paper.gene_sizes - 1)).tolist()
    assert not paper.is_canonical(raw).any()


@pytest.mark.parametrize("multiple", [64, 128, 256])
def test_expert_sizes_may_be_multiples(multiple: int) -> None:
    sizes = {"from": multiple, "to": 4096, "step": multiple}
    mapping = custom(expert_size=sizes) | {"conditions": {"max_expert_ffn_ratio": 2}}
    space = SearchSpace.from_mapping(mapping)
    expected = BruteForce(
        custom(n_experts=[1], top_k=[1], expert_size=list(range(multiple, 4097, multiple)))
        | {"conditions": {"max_expert_ffn_ratio": 2}}
    )
    architectures = space.architectures(everything(space))
    assert rows_of(architectures) == expected.rows()
    assert (architectures.expert_size % multiple == 0).all()
    assert (architectures.expert_size <= 2 * architectures.width).all()
    largest = [architectures.expert_size[architectures.width == w].max() for w in (512, 768, 1024)]
    assert largest == [1024, 1536, 2048]


def test_conditions_limit_the_ratio_and_the_activation_rate() -> None:
    mapping = custom(n_experts=[1, 4, 8], top_k=[1, 2, 4], expert_size=[128, 512, 2048])
    space = SearchSpace.from_mapping(mapping | {"conditions": {"max_activation_rate": 0.25, "max_expert_ffn_ratio": 1}})
    found = space.architectures(everything(space))
    assert set(zip(found.n_experts.tolist(), found.top_k.tolist(), strict=True)) == {(1, 1), (4, 1), (8, 1), (8, 2)}
    assert (found.expert_size <= found.width).all()
    assert 512 in found.expert_size[found.width == 512]


def test_the_fingerprint_is_of_the_content_not_of_its_spelling(paper: SearchSpace) -> None:
    spelled = paper.mapping() | {"name": "other", "description": "words"}
    spelled["axes"] = dict(reversed(list(spelled["axes"].items()))) | {"depth": [{"from": 4, "to": 32, "step": 4}]}
    assert SearchSpace.from_mapping(spelled).fingerprint == paper.fingerprint
    for change in ({"head_dim": 128}, {"conditions": {"max_activation_rate": 0.5}}):
        assert SearchSpace.from_mapping(paper.mapping() | change).fingerprint != paper.fingerprint
    fewer = paper.mapping()
    fewer["axes"] = fewer["axes"] | {"depth": [4, 8]}
    assert SearchSpace.from_mapping(fewer).fingerprint != paper.fingerprint


QWEN = {"depth": 24, "width": 896, "n_kv_heads": 2, "expert_size": 4864}
INSIDE = {"depth": 16, "width": 2048, "n_experts": 16, "top_k": 1, "expert_size": 1024, "n_kv_heads": 4}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, True),
        ({"vocabulary": 151_936}, True),
        ({"vocabulary": 151_936, "tied": False}, True),
        ({"qkv_bias": True}, False),
        ({"qk_norm": "no"}, False),
        ({"norms_per_layer": 4}, False),
        ({"shared_expert_size": 64}, False),
        ({"shared_gate": True}, False),
        ({"head_dim": 128}, False),
        ({"n_heads": 64}, False),
        ({"depth": 17}, False),
        ({"expert_size": 1025}, False),
        ({"n_kv_heads": 16}, False),
        ({"n_kv_heads": 32}, True),
        ({"top_k": 4}, False),
        (QWEN, False),
    ],
)
def test_find_knows_what_a_space_leaves_alone(paper: SearchSpace, change: dict[str, Any], found: bool) -> None:
    key = paper.find(one(INSIDE | change))
    assert (key >= 0).tolist() == [found]
    assert key[0] >= 0 or key.tolist() == [-1]


def test_find_answers_row_by_row(paper: SearchSpace) -> None:
    mixed = Architectures.concatenate([one(INSIDE), one(INSIDE | {"qkv_bias": True}), one(INSIDE | {"depth": 12})])
    keys = paper.find(mixed)
    assert (keys >= 0).tolist() == [True, False, True]
    assert paper.architectures(paper.genotypes(keys[[0, 2]])).depth.tolist() == [16, 12]
    assert paper.find(mixed[:0]).tolist() == []


def test_tables_are_read_only(paper: SearchSpace) -> None:
    for table in (paper.depths, paper.widths, paper.experts, paper.top_ks, paper.expert_sizes, paper.kv_values):
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 1
    architectures = paper.architectures(paper.genotypes(np.arange(3)))
    assert not any(getattr(architectures, name).flags.writeable for name in SHAPE)


def test_a_row_out_of_range_says_nothing_of_the_others() -> None:
    axes = {"depth": [4, 8], "width": [768, 1024], "expert_ffn_ratio": [1, 2], "n_kv_heads": [1, "n_heads"]}
    space = SearchSpace.from_mapping({"name": "small", "axes": axes})
    first, last = space.genotypes(np.array([0, space.size - 1]))
    rows = np.array([first, first - 1, last, last + 1])
    assert space.is_canonical(rows).tolist() == [True, False, True, False]


def test_neighbours_of_each_are_those_of_every_row_alone(paper: SearchSpace) -> None:
    space = paper
    genotypes = space.sample(40, np.random.default_rng(7))
    owner, near = space.neighbours_of_each(genotypes)
    for row in range(len(genotypes)):
        assert np.array_equal(near[owner == row], space.neighbours(genotypes[row : row + 1]))
    assert np.array_equal(owner, np.sort(owner))
