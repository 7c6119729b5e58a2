"""Engines by the names that logs, tables and users give them."""

#: How the names that engines are given in logs and tables begin, and the engine.
ENGINES = {
    "llama": "llama.cpp",
    "ollama": "llama.cpp",
    "lm studio": "llama.cpp",
    "koboldcpp": "llama.cpp",
    "tensorrt-edge": "TensorRT-Edge-LLM",
    "genie": "Genie",
    "qnn": "Genie",
    "rkllm": "rkllm",
    "vllm": "vLLM",
    "mlc": "MLC-LLM",
}


def engine_of(name: str) -> str:
    """The engine that a name stands for, `llama.cpp` of `llama-bench May-2024`; the name itself of an unknown one."""
    lower = name.strip().lower()
    return next((engine for start, engine in ENGINES.items() if lower.startswith(start)), name.strip())
