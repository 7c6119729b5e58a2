"""ONNX Runtime GenAI: its model builder converts, its generator runs; `file` is its configuration, the graph lies beside it."""

import importlib
import itertools
import json
import runpy
import sys
import time
from math import prod
from pathlib import Path

import numpy as np
import onnxruntime_genai

BESIDE = ("cos_cache", "sin_cache", "_scales", "_zp", "bias")  # names of what is no weight
BYTES = 2  # TensorProto.UINT8 of ONNX: weights of so few bits that a byte holds several


def convert(job):
    """For processors; its builder takes every layer with as many outputs as there are tokens for a head, so it is told which one is."""
    importlib.import_module("onnxruntime_genai.models")  # from then on its folder is on the path
    base = importlib.import_module("builders.base").Model
    base.has_lm_head = lambda self, module: module is self.weights.lm_head
    folder = str(Path(job["file"]).parent)
    given = {"-i": job["hf"], "-m": job["hf"], "-o": folder, "-p": job["precision"], "-e": "cpu", "-c": folder}
    sys.argv[1:] = itertools.chain(*given.items())
    runpy.run_module("onnxruntime_genai.models.builder", run_name="__main__")


def matrices(job):
    """Elements of matrices; names end with the bits of packed ones, and of tied tables that are stored twice the head's is left out."""
    import onnx

    graph = onnx.load(str(Path(job["file"]).with_name("model.onnx")), load_external_data=False).graph
    held = {i.name: i for i in graph.initializer if len(i.dims) > 1 and not i.name.endswith(BESIDE)}
    if json.loads(Path(job["hf"], "config.json").read_text())["tie_word_embeddings"] and any(
        "embed_tokens" in n for n in held
    ):
        held = {name: i for name, i in held.items() if not name.startswith("lm_head")}
    return sum(prod(i.dims) * (8 // int(i.name[-1]) if i.data_type == BYTES else 1) for i in held.values())


def load(job):
    """The model, on so many threads."""
    settings = onnxruntime_genai.Config(str(Path(job["file"]).parent))
    settings.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": job["threads"]}}}}))
    return onnxruntime_genai.Model(settings)


def begun(loaded, job):
    """A generator with room for the request and one token more."""
    tokens = job["input_tokens"] + job["output_tokens"] + 1
    how = onnxruntime_genai.GeneratorParams(loaded)
    how.set_search_options(max_length=tokens, min_length=tokens, do_sample=False)
    return onnxruntime_genai.Generator(loaded, how)


def prompt(job):
    """Its tokens."""
    return np.arange(job["input_tokens"], dtype=np.int32) * 7 % 256


def first_logits(job, ids):
    """Those of the generator."""
    run = begun(load(job), job)
    run.append_tokens(np.array(ids, np.int32))
    return np.asarray(run.get_logits()).reshape(-1).tolist()


def generated(loaded, job):
    """Tokens of a request."""
    run = begun(loaded, job)
    run.append_tokens(prompt(job))
    for _ in range(job["output_tokens"]):
        run.generate_next_token()
    return len(run.get_sequence(0)) - job["input_tokens"]


def repetition(loaded, job):
    """The first token is chosen from the prompt's own logits."""
    run = begun(loaded, job)
    begin = time.perf_counter()
    run.append_tokens(prompt(job))
    run.generate_next_token()
    middle = time.perf_counter()
    for _ in range(job["output_tokens"]):
        run.generate_next_token()
    return 1e3 * (middle - begin), 1e3 * (time.perf_counter() - middle) / job["output_tokens"]
