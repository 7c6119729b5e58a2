"""What reads files and imports modules: bytes from outside pass through `objectives/outside.py` alone.

The calls below are found by their names in the source's syntax tree, whatever they are called on. Whoever needs another
one adds its file and the reason here.
"""

import ast
from collections.abc import Sequence

import pytest

from tests.sources import BUNDLED, PACKAGES, called, files_of, parsed, walked

READING = {
    *("open", "fdopen", "read_text", "read_bytes", "openat"),
    *("memmap", "fromfile", "loadtxt", "genfromtxt", "memory_map", "ParquetFile", "open_file", "open_stream"),
    *("read_csv", "read_table", "read_json", "read_parquet", "read_pickle", "read_sql", "read_excel", "read_feather"),
    *("ZipFile", "TarFile", "FileInput", "getlines", "getline", "unpack_archive", "copyfile", "copytree", "copy2"),
    *("from_pretrained", "safe_open", "load_file", "JournalFileBackend", "RDBStorage", "get_storage"),
}
IMPORTING = {
    *("import_module", "__import__", "spec_from_file_location", "module_from_spec", "exec_module", "load_module"),
    *("run_path", "run_module", "exec", "SourceFileLoader"),
}
EVERYWHERE = READING | IMPORTING
OF = {  # names that are everywhere: on these modules they read
    "load": {"np", "numpy", "json", "pickle", "marshal", "torch", "yaml", "tomllib", "joblib", "shelve"},
    "connect": {"sqlite3"},
    "from_file": {"Tokenizer", "Reader"},
    "eval": {"", "builtins"},
    "loads": {"pickle", "marshal", "json"},
    "copy": {"shutil"},
    "move": {"shutil"},
    "input": {"fileinput"},
}
WORKER = "runs in an engine's own interpreter, which has none of our modules; its own job's files and answers"
SHIPPED = "a file that is shipped in the package, not known by a path"
PART = "the module of a plug-in that is shipped, by a name from its folder's list"
ALLOWED: dict[str, tuple[set[str], str]] = {
    "objectives/outside.py": ({"open", "fdopen", "json.loads"}, "the intake itself"),
    "nas/files/own_files.py": ({"open", "fdopen"}, "files of ours to write: created exclusively, plain, with one name"),
    "nas/record/jsonl_log.py": ({"fdopen"}, "appends to the descriptor that own_files opened"),
    "nas/record/database.py": ({"sqlite3.connect"}, "the one place that opens stores, after they were looked at"),
    "nas/study/user_code.py": (
        {"import_module", "spec_from_file_location", "module_from_spec", "exec_module"},
        "the one place that imports a user's module, where the command has the right",
    ),
    "nas/terminal/flags.py": (
        {"read_text", "eval"},
        "the entries of our own table of keys, as they stand in its source",
    ),
    "objectives/plausible.py": ({"yaml.load"}, SHIPPED),
    "objectives/plugins.py": ({"yaml.load"}, SHIPPED),
    "nas/terminal/streams.py": ({"open"}, "the null device and the standard streams' descriptors"),
    "nas/terminal/parser.py": ({"exec", "import_module"}, "an empty text, for a signal; our own three packages"),
    "nas/commands/report.py": ({"open"}, "the browser"),
    "nas/pages/page.py": ({"read_text"}, "shipped with this package, and scripts of the installed package bokeh"),
    "plugins/board/plas_board/measure/workers/hardware_worker.py": ({"json.load"}, WORKER),
    "plugins/board/plas_board/measure/workers/llama_bench_worker.py": ({"json.load", "open", "json.loads"}, WORKER),
    "plugins/board/plas_board/measure/workers/torch_worker.py": ({"json.load"}, WORKER),
    "plugins/board/plas_board/measure/workers/vllm_worker.py": ({"json.load", "fdopen"}, WORKER),
    "plugins/range/plas_range/atlas.py": (
        {"open", "read_text", "json.loads"},
        "by hand in a checkout alone: its own page, and tables and templates of the project",
    ),
    "plugins/stacks/plas_stacks/workers/engine_worker.py": (
        {"json.load", "open", "fdopen", "import_module", "from_pretrained"},
        WORKER,
    ),
    "plugins/stacks/plas_stacks/workers/executorch_worker.py": ({"json.load", "open", "from_pretrained"}, WORKER),
    "plugins/stacks/plas_stacks/workers/litert_lm_worker.py": ({"shutil.move", "open"}, WORKER),
    "plugins/stacks/plas_stacks/workers/onnx_genai_worker.py": (
        {"json.loads", "import_module", "read_text", "run_module"},
        WORKER,
    ),
    "plugins/train/plas_train/workers/train_worker.py": ({"json.load", "memmap", "open", "torch.load"}, WORKER),
    "nas/export/checkpoint.py": ({"open"}, "writes a new file"),
    "plugins/stacks/plas_stacks/gguf.py": ({"open"}, "writes a new file"),
    "nas/export/hf_config.py": ({"from_pretrained"}, "transformers reads what the intake looked at"),
    "nas/export/documents.py": (
        {"ParquetFile", "memory_map", "open_file", "open_stream"},
        "pyarrow reads a file that the intake looked at",
    ),
    "nas/record/optuna_trials.py": (
        {"JournalFileBackend", "RDBStorage"},
        "Optuna reads a journal that the intake looked at, a database that nas.record.database looked at",
    ),
    "nas/__init__.py": ({"import_module"}, "our own modules, by the list of public names"),
    "nas/__main__.py": ({"import_module"}, "our own commands, by their list"),
    "nas/terminal/completion.py": ({"import_module"}, "our own commands, by their list"),
    "nas/search/discovery.py": ({"import_module"}, PART),
    "nas/search/reading.py": ({"import_module"}, PART),
    "nas/export/stack_protocol.py": ({"import_module"}, PART),
    "nas/problem/objective.py": ({"import_module", "pickle.loads"}, f"{PART}; the bytes that it made a line before"),
    "nas/study/metrics.py": ({"import_module"}, PART),
    "objectives/parts.py": ({"import_module"}, PART),
    "objectives/assessment.py": ({"import_module"}, PART),
    "objectives/loss_law/form.py": ({"import_module"}, PART),
}


def way_in(call: ast.Call) -> str:
    """The name of a reading or importing call; "" of any other."""
    name = called(call)
    if name in EVERYWHERE:
        return name
    if name not in OF:
        return ""
    on = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return f"{on}.{name}".removeprefix(".") if on in OF[name] else ""


def bare(nodes: Sequence[ast.AST]) -> set[str]:
    """Names of `OF` that a file takes out of their modules, where a call no longer says whose they are; a second name for a module too."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{a.name}" for a in node.names if node.module in OF.get(a.name, ())}
            found |= {a.name for a in node.names if a.asname and a.name in EVERYWHERE}
        elif isinstance(node, ast.Import):
            modules = set().union(*OF.values()) - {"np"}
            found |= {a.name for a in node.names if a.name in modules and a.asname not in (None, "np")}
    return found


def handed_on(nodes: Sequence[ast.AST]) -> set[str]:
    """Reading functions that are not called but given to somebody else: `map(open, paths)`."""
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in nodes
        if isinstance(node, (ast.Name, ast.Attribute))
        and id(node) not in functions
        and isinstance(node.ctx, ast.Load)
        and (
            node.id in {"open", "exec", "eval", "__import__"} if isinstance(node, ast.Name) else node.attr in EVERYWHERE
        )
    }


def doors(tree: ast.Module) -> set[str]:
    """What of a file reads or imports past the intake."""
    nodes = walked(tree)
    calls = {way_in(node) for node in nodes if isinstance(node, ast.Call)} - {""}
    return calls | bare(nodes) | handed_on(nodes)


@pytest.mark.slow
def test_bytes_from_outside_pass_through_the_intake_alone() -> None:
    found = {
        path.as_posix(): names for path in files_of(*PACKAGES, *BUNDLED, "configs") if (names := doors(parsed(path)))
    }
    assert found == {file: of for file, (of, _) in ALLOWED.items()}, (
        "expected files to be read by objectives/outside.py (text, json_of, …) alone; use it, or add the file here with a reason"
    )


@pytest.mark.parametrize(
    "planted",
    [
        *("open(path)", "path.open()", "io.open(path)", "os.open(path, 0)", "path.read_text()", "path.read_bytes()"),
        *("np.load(path)", "json.load(file)", "torch.load(path)", "pickle.loads(content)", "sqlite3.connect(path)"),
        *(
            "np.memmap(path)",
            "pd.read_csv(path)",
            "shutil.copy(path, there)",
            "map(open, paths)",
            "each(Path.read_text)",
        ),
        *("importlib.import_module(name)", "import_module(name)", "__import__(name)", "exec(text)", "eval(text)"),
        *(
            "importlib.util.spec_from_file_location(name, path)",
            "spec.loader.exec_module(module)",
            "runpy.run_path(path)",
        ),
        *("from json import load", "import sqlite3 as database", "from runpy import run_path as go"),
    ],
)
def test_a_planted_way_past_the_intake_is_found(planted: str) -> None:
    assert doors(ast.parse(f"def f(path):\n    {planted}\n")) != set()


@pytest.mark.parametrize(
    "harmless", ["outside.text(path, 10)", "store.connect()", "json.dumps(x)", "re.compile('x')", "law.load(x)"]
)
def test_what_only_looks_like_it_is_not(harmless: str) -> None:
    assert doors(ast.parse(f"def f(path):\n    {harmless}\n")) == set()
