"""The files that are installed elsewhere: what the sdist and the wheel hold, and that the sdist makes the same wheel."""

import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.sources import BUNDLED, PACKAGES, ROOT

pytestmark = pytest.mark.slow
MOST_BYTES = 6_000_000  # of a wheel
SHIPPED = (*PACKAGES, "configs", *BUNDLED)
LEFT_OVERS = ("__pycache__", ".pyc", ".sqlite", ".egg-info", ".pytest_cache", ".venv")


def build(target: Path, *what: str) -> Path:
    """The folder with what was built of this checkout; hatchling, as installed here."""
    pytest.importorskip("hatchling", reason="hatchling builds the packages")
    line = [sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", str(target), str(ROOT)]
    ended = subprocess.run(line, cwd=target, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return target


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist, and the wheel that is made of it."""
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    """The wheel that the sdist made."""
    (path,) = built.glob("plas_codesign-*-py3-none-any.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    """The files that git keeps."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout here: nothing says which files belong to the project")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in listed.splitlines() if (ROOT / name).exists()}


def contents(wheel: zipfile.ZipFile) -> dict[str, int]:
    """Checksums of a wheel's files by name, without the record of their order."""
    return {each.filename: each.CRC for each in wheel.infolist() if not each.filename.endswith("/RECORD")}


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: zipfile.ZipFile, tracked: set[str]) -> None:
    about = {name for name in wheel.namelist() if ".dist-info/" in name}
    assert set(wheel.namelist()) - about == {
        name[name.index(Path(place).name) :] for place in SHIPPED for name in tracked if name.startswith(f"{place}/")
    }
    assert {Path(name).name for name in about} == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE"}
    assert [name for name in wheel.namelist() if name.startswith("tests/") or any(w in name for w in LEFT_OVERS)] == []


def test_the_wheel_has_every_study_the_licence_and_a_size(wheel: zipfile.ZipFile, built: Path) -> None:
    (path,) = built.glob("*.whl")
    assert path.stat().st_size < MOST_BYTES
    studies = {f"configs/{study.name}" for study in (ROOT / "configs").glob("*.yaml")}
    assert studies
    assert studies <= set(wheel.namelist())
    (licence,) = [name for name in wheel.namelist() if name.endswith("/licenses/LICENSE")]
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()


def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    told = Parser().parsestr(wheel.read(name).decode())
    assert told["Name"] == "plas-codesign"
    assert told["Requires-Python"] == ">=3.11"
    assert told["License-Expression"] == "Apache-2.0"
    (points,) = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    assert "plas = nas.__main__:main" in wheel.read(points).decode()


def test_the_sdist_is_the_checkout(built: Path, tracked: set[str]) -> None:
    (path,) = built.glob("plas_codesign-*.tar.gz")
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert held - {"PKG-INFO"} == tracked


def test_the_checkout_makes_the_wheel_that_the_sdist_makes(
    wheel: zipfile.ZipFile, tmp_path: Path, tracked: set[str]
) -> None:
    (direct,) = build(tmp_path, "--wheel").glob("*.whl")
    assert tracked
    assert contents(zipfile.ZipFile(direct)) == contents(wheel)
