"""Problems are what they were frozen as: values, fronts, digests; a release that computes others refuses, naming both."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import plas_bench
import pytest
import yaml
from plas_bench import fronts, instance
from plas_bench.definition import PROBLEMS, Definition, definition
from plas_bench.digests import canonical, sha256_of
from plas_bench.instance import KEPT, BenchProblem, bench_of, bench_problem, refuse_other_values
from plas_bench.kinds import case_of
from plas_bench.tables import PUBLIC

from nas.errors import PlasError, UsageError
from nas.problem.evaluations import non_dominated

NAMES = plas_bench.names()
EXTERNAL = [name for name in NAMES if (table := definition(name).table) is not None and table.external]
OWN = [name for name in NAMES if name not in EXTERNAL]
SMALL = [name for name in OWN if definition(name).designs <= KEPT]
LARGE = [name for name in OWN if name not in SMALL]
QUICK = ["plas1-fine-loss-latency", "plas1-fine-rare"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of solved fronts of the test's own."""
    monkeypatch.setenv(fronts.FOLDER, str(tmp_path))
    bench_problem.cache_clear()
    yield tmp_path
    bench_problem.cache_clear()


@pytest.mark.parametrize(
    ("genotypes", "said"),
    [
        ([[0, 0, 0, 0, 0, np.nan]], "expected finite genes, got nan"),
        ([[0, 0, 0, 0, 0, np.inf]], "expected finite genes, got inf"),
        ([0, 0, 0, 0, 0, 0], r"expected genotypes of shape \(n, 6\), got \(6,\)"),
        ([[0, 0]], r"expected genotypes of shape \(n, 6\), got \(1, 2\)"),
        ([[0, 0], [1]], "expected genotypes of numbers"),
        ("depth", "expected genotypes of numbers"),
    ],
)
def test_what_is_no_genotype_is_refused(genotypes: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plas_bench.problem("plas1-paper-loss-latency").evaluate(genotypes)


def brute_force(bench: BenchProblem) -> np.ndarray:
    """Values of the front by pricing every design and comparing all that meet the limits; no solver."""
    values, feasible = bench.true(bench.problem.space.genotypes(np.arange(bench.size)))
    return values[feasible][non_dominated(values[feasible])]


@pytest.mark.parametrize("name", OWN)
def test_a_problem_has_the_values_and_sizes_that_it_was_frozen_with(name: str) -> None:
    bench = bench_problem(name)
    assert bench.size == definition(name).designs
    assert (bench.repair(definition(name).check.genotypes) == definition(name).check.genotypes).all()
    values = bench.evaluate(bench.sample(50, seed=3))
    assert values.objectives.shape == (min(50, bench.size), len(bench.objectives))
    assert values.violations.shape[1] == len(bench.constraints)
    assert np.isfinite(values.objectives).all()


@pytest.mark.parametrize("name", SMALL)
def test_a_front_is_that_of_brute_force_and_the_frozen_one(name: str) -> None:
    bench, front = bench_problem(name), bench_problem(name).exact_front()
    found = brute_force(bench)
    assert len(found) == len(front.keys) == bench.definition.front.members
    assert sha256_of(canonical(found)) == bench.definition.front.sha256
    assert found.min(axis=0) == pytest.approx(bench.ideal, rel=1e-8)
    assert found.max(axis=0) == pytest.approx(bench.nadir, rel=1e-8)


@pytest.mark.parametrize("name", QUICK)
def test_the_solver_finds_the_frozen_front_and_keeps_it(name: str, cache: Path) -> None:
    front = bench_problem(name).exact_front()
    assert (cache / f"{name}.keys").is_file()
    bench_problem.cache_clear()
    again = bench_problem(name)
    assert np.array_equal(fronts.kept_keys(name, again.size), front.keys)
    assert np.array_equal(again.exact_front().keys, front.keys)
    (cache / f"{name}.keys").write_bytes(b"something else")
    assert fronts.kept_keys(name, again.size) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LARGE if name not in QUICK])
def test_the_solver_finds_the_other_frozen_fronts(name: str) -> None:
    assert len(bench_problem(name).exact_front().keys) == definition(name).front.members


@pytest.mark.parametrize("name", EXTERNAL)
def test_public_tables_are_those_that_were_frozen(
    name: str, external_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PUBLIC, str(external_data))
    assert len(bench_problem(name).exact_front().keys) == definition(name).front.members


def test_a_public_table_that_is_not_there_or_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PUBLIC, raising=False)
    with pytest.raises(UsageError, match=f"{PUBLIC}: expected the folder with the public table loss/morph.csv"):
        plas_bench.problem("plas1-table-morph")
    monkeypatch.setenv(PUBLIC, str(tmp_path))
    with pytest.raises(UsageError, match="No such file"):
        plas_bench.problem("plas1-table-morph")
    (tmp_path / "loss").mkdir()
    (tmp_path / "loss" / "morph.csv").write_text("depth,width,tokens,loss\n2,64,10,3\n", encoding="utf-8")
    with pytest.raises(PlasError, match=r"expected the file with SHA-256 .* got"):
        plas_bench.problem("plas1-table-morph")


@pytest.mark.parametrize("kind", ["caches", "budgets", "three", "mirrored"])
def test_an_instance_of_a_kind_is_the_kind_itself(kind: str) -> None:
    bench = bench_problem(f"plas1-kind-{kind}-1")
    assert bench.definition.kind is not None
    case, genotypes = case_of(kind, bench.definition.kind.seed), bench.sample(200, seed=1)
    assert np.allclose(bench.evaluate(genotypes).objectives, case.problem.evaluate(genotypes).values, rtol=1e-12)
    assert np.allclose(bench.true(genotypes)[0], case.values(genotypes), rtol=1e-12)
    assert np.array_equal(bench.true(genotypes)[1], case.feasible(genotypes))


def test_a_prior_is_the_formulas_and_no_measurement() -> None:
    bench = bench_problem("plas1-kind-three-1")
    genotypes = bench.sample(100, seed=0)
    formulas = case_of("three", bench.definition.kind.seed).analytic.evaluate(genotypes).values
    assert np.allclose(bench.prior(genotypes), formulas, rtol=1e-12)
    assert not np.allclose(bench.evaluate(genotypes).objectives[:, :2], formulas[:, :2], rtol=1e-3)
    table = bench_problem("plas1-table-trained")
    assert table.prior(table.sample(5, seed=0)).shape == (5, 2)
    plain = bench_problem("plas1-paper-rare")
    assert np.array_equal(plain.prior(genotypes), plain.evaluate(genotypes).objectives)


def changed(name: str, **keys: object) -> Definition:
    """A definition with other content."""
    return Definition.model_validate({**definition(name).model_dump(), **keys})


def test_other_values_are_refused_and_both_named() -> None:
    known = definition("plas1-paper-rare")
    objectives = [list(row) for row in known.check.objectives]
    objectives[2][1] *= 1 + 1e-6
    other = bench_of(changed(known.name, check={**known.check.model_dump(), "objectives": objectives}))
    with pytest.raises(PlasError) as refused:
        refuse_other_values(other)
    assert f"expected total_ms {objectives[2][1]:.12g} of design {known.check.genotypes[2]}" in str(refused.value)
    assert f"got {known.check.objectives[2][1]:.12g}" in str(refused.value)


def test_another_law_or_device_is_noticed() -> None:
    study = definition("plas1-paper-loss-latency").study
    law = {**study["law"], "coefficients": {**study["law"]["coefficients"], "kappa_l": 9.97}}
    with pytest.raises(PlasError, match="expected loss"):
        refuse_other_values(bench_of(changed("plas1-paper-loss-latency", study={**study, "law": law})))
    device = {**study["device"], "bandwidth": "2.05e11 B/s"}
    with pytest.raises(PlasError, match="expected total_ms"):
        refuse_other_values(bench_of(changed("plas1-paper-loss-latency", study={**study, "device": device})))


def of_front(name: str, **keys: object) -> BenchProblem:
    """A problem that was frozen with another front."""
    return bench_of(changed(name, front={**definition(name).front.model_dump(), **keys}))


def test_another_front_is_refused_and_both_named() -> None:
    known, no = definition("plas1-paper-rare"), "0" * 64
    with pytest.raises(PlasError, match=rf"expected the exact front {no[:12]}, .* got {known.front.sha256[:12]}"):
        of_front(known.name, sha256=no, keys_sha256=no).exact_front()
    with pytest.raises(PlasError, match=r"expected an exact front of 3 different vectors, .* got 48"):
        of_front(known.name, sha256=no, keys_sha256=no, vectors=3).exact_front()
    nadir = [2 * value for value in known.front.nadir]
    with pytest.raises(PlasError, match="expected the exact front"):
        of_front(known.name, sha256=no, nadir=nadir).exact_front()


def test_what_rounding_alone_changes_is_not_another_front() -> None:
    for keys in ({"sha256": "0" * 64}, {"keys_sha256": "0" * 64}):
        assert len(of_front("plas1-paper-rare", **keys).exact_front().keys) == 48


def test_nothing_of_a_study_is_looked_up_by_name() -> None:
    for name in NAMES:
        study = definition(name).study
        assert isinstance(study["space"], dict), name
        assert isinstance(study["law"], dict), name
        assert isinstance(study["device"], dict), name
        assert study["calibration"] == "none", name


def test_a_digest_does_not_see_last_bits_ties_and_order() -> None:
    values = np.array([[1.0, 4.0], [2.0, 3.0], [2.0, 3.0], [3.0, 3.0], [5.0, 1.0]])
    shaken = values[::-1] * (1 + 1e-13)
    assert sha256_of(canonical(values)) == sha256_of(canonical(shaken))
    assert canonical(values).tolist() == [[1, 4], [2, 3], [5, 1]]
    assert sha256_of(canonical(values)) != sha256_of(canonical(values * (1 + 1e-5)))


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean plas1-paper-rare"):
        plas_bench.problem("plas1-paper-rar")


def test_files_are_small_and_named_as_what_they_hold() -> None:
    for path in PROBLEMS.glob("*.yaml"):
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["name"] == path.stem
        assert os.path.getsize(path) < 20_000


def test_a_kept_front_that_is_another_is_solved_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance, "KEPT", 0)
    name = "plas1-paper-loss-latency"
    fronts.keep(name, np.arange(3))
    assert len(front := bench_problem(name).exact_front().keys) == definition(name).front.members
    assert np.array_equal(fronts.kept_keys(name, bench_problem(name).size), front)
