"""llama.cpp built on a plain machine, for processors alone: llama-bench, llama-batched-bench, llama-quantize, llama-tokenize, llama-logits.

python -m studies.llama_cpp.build --out FOLDER    the programs are in FOLDER/build/bin when it ends

Its sources come with the source distribution of llama-cpp-python, which pip fetches; what is needed besides is a C++ compiler.
cmake and ninja are installed with pip where they are missing. Ten to forty minutes on two cores; started again, it goes on where
it stopped. `llama-logits` (studies/llama_cpp/logits.cpp) prints the logits of token ids, for tests. The build is for
the processor that it runs on (-march=native) and not optimised further than llama.cpp's own Release.
"""

import argparse
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
LOGITS = Path(__file__).resolve().parent / "logits.cpp"
PROGRAMS = ("llama-bench", "llama-batched-bench", "llama-quantize", "llama-tokenize")
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "LLAMA_BUILD_TOOLS": "ON",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_SERVER": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_CURL": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "GGML_CCACHE": "OFF",
    "LLAMA_BUILD_COMMIT": f"{PACKAGE}-{VERSION}",  # what llama-bench calls itself; the sources come without their history
}


def run(*words: object) -> None:
    """One command; ends this program where it fails."""
    print("$", *words, flush=True)
    if code := subprocess.run([str(word) for word in words], check=False).returncode:
        sys.exit(f"{words[0]} ended with {code}; the same command again goes on")


def sources(folder: Path) -> Path:
    """The folder of llama.cpp's sources, fetched and unpacked if they are not there."""
    where = folder / f"{PACKAGE.replace('-', '_')}-{VERSION}"
    if not (where / "vendor").is_dir():
        archive = folder / "sdist" / f"{where.name}.tar.gz"
        if not archive.exists():
            pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", PACKAGE)
            run(*pip, "--dest", archive.parent, f"{PACKAGE}=={VERSION}")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return where / "vendor" / "llama.cpp"


def tools() -> None:
    """Install cmake and ninja where they are missing.

    Raises:
        SystemExit: there is no C++ compiler.
    """
    if missing := [name for name in ("cmake", "ninja") if shutil.which(name) is None]:
        run(sys.executable, "-m", "pip", "install", *missing)
    if shutil.which("c++") is None:
        sys.exit("c++: expected a C++ compiler on the PATH, got none; install g++ or clang")


def build(source: Path, folder: Path, jobs: int) -> Path:
    """Configure, compile, link; the folder of the programs."""
    options = [f"-D{name}={value}" for name, value in OPTIONS.items()]
    run("cmake", "-G", "Ninja", "-S", source, "-B", folder, *options)
    run("cmake", "--build", folder, "--parallel", jobs, "--target", *PROGRAMS)
    programs = folder / "bin"
    headers = [f"-I{source / part}" for part in ("include", "ggml/include")]
    libraries = [f"-L{programs}", "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{programs}"]
    run("c++", "-O2", "-std=c++17", LOGITS, *headers, *libraries, "-o", programs / "llama-logits")
    return programs


def main() -> None:
    """Fetch, build, say where the programs are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("llama-cpp"))
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    folder = given.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tools()
    programs = build(sources(folder), folder / "build", given.jobs)
    run(programs / "llama-bench", "--version")
    print(
        f"export PLAS_LLAMA_CPP={programs}    # for the tests; plas measure takes --interpreter {programs / PROGRAMS[0]}"
    )


if __name__ == "__main__":
    main()
