"""llama.cpp in llama-cpp-python, on GGUF files that PLAS writes."""

import time

import llama_cpp
import numpy as np


def matrices(job):
    """Elements of tensors of several dimensions."""
    from gguf import GGUFReader

    return sum(
        tensor.n_elements for tensor in GGUFReader(job["file"]).tensors if (np.array(tensor.shape) > 1).sum() > 1
    )


def load(job):
    """The file, memory-mapped."""
    tokens, threads = job["input_tokens"] + job["output_tokens"] + 1, job["threads"]
    return llama_cpp.Llama(job["file"], n_ctx=tokens, n_threads=threads, n_threads_batch=threads, verbose=False)


def logits(loaded):
    """Those after the last token, (V,)."""
    return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(loaded.ctx, -1), (loaded.n_vocab(),))


def next_token(loaded, ids):
    """The next token after a prompt; nothing is kept of what came before."""
    loaded.reset()
    loaded.eval(ids)
    return int(logits(loaded).argmax())


def first_logits(job, ids):
    """Those after the prompt."""
    loaded = load(job)
    next_token(loaded, ids)
    return logits(loaded).tolist()


def generated(loaded, job):
    """Tokens of a request."""
    made = [next_token(loaded, [7 * i % 256 for i in range(job["input_tokens"])])]
    while len(made) < job["output_tokens"]:
        loaded.eval(made[-1:])
        made.append(int(logits(loaded).argmax()))
    return len(made)


def repetition(loaded, job):
    """Prompt and steps, each with the choice of a token."""
    begin = time.perf_counter()
    token = next_token(loaded, [7 * i % 256 for i in range(job["input_tokens"])])
    middle = time.perf_counter()
    for _ in range(job["output_tokens"]):
        loaded.eval([token])
        token = int(logits(loaded).argmax())
    return 1e3 * (middle - begin), 1e3 * (time.perf_counter() - middle) / job["output_tokens"]
