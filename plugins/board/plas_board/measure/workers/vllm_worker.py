"""Measure one architecture with random weights in vLLM; needs nothing but vllm.

Reads a job as JSON from standard input and prints one line of JSON, as `torch_worker.py` beside it does. The decode
step is (time of S_out + 1 tokens − time of 1 token) / S_out, since vLLM gives whole requests.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path


def configuration(a, length):
    """The published family that the architecture is a member of: Qwen3, or Qwen3-MoE when sparse."""
    sparse = a["n_experts"] > 1
    if a.get("shared_expert_size"):
        raise SystemExit("shared experts have no counterpart in Qwen3")
    common = {
        "architectures": ["Qwen3MoeForCausalLM" if sparse else "Qwen3ForCausalLM"],
        "model_type": "qwen3_moe" if sparse else "qwen3",
        "hidden_size": a["width"],
        "num_hidden_layers": a["depth"],
        "num_attention_heads": a["n_heads"],
        "num_key_value_heads": a["n_kv_heads"],
        "head_dim": a["head_dim"],
        "intermediate_size": a["expert_size"],
        "vocab_size": a["vocabulary"],
        "tie_word_embeddings": bool(a.get("tied", True)),
        "max_position_embeddings": length,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    experts = {
        "num_experts": a["n_experts"],
        "num_experts_per_tok": a["top_k"],
        "moe_intermediate_size": a["expert_size"],
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
    }
    return common | (experts if sparse else {})


def cache_gib(job):
    """GiB that hold the KV cache of the whole batch, and one more, in whole ones."""
    a, tokens = job["architecture"], job["batch"] * (job["input_tokens"] + job["output_tokens"] + 1)
    return 2 + tokens * a["depth"] * 2 * a["n_kv_heads"] * a["head_dim"] * 4 // 2**30


def prepared(job):
    """Settings that vLLM reads when it is imported."""
    # on a processor it would take nearly all of the memory, and refuse to start when that is not free
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(cache_gib(job)))
    os.environ |= {
        "VLLM_LOGGING_LEVEL": "ERROR",
        "PYTHONWARNINGS": "ignore",
    }  # so that the last line is what went wrong


def measure(job):
    """Warm up, then time requests of one token and of S_out + 1 tokens."""
    prepared(job)
    import vllm

    a, length = job["architecture"], job["input_tokens"] + job["output_tokens"] + 1
    if not a["vocabulary"]:
        raise SystemExit("vLLM needs a vocabulary; measure with --vocabulary")
    dtype = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}[job["precision"]]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(configuration(a, length)))
        engine = vllm.LLM(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            dtype=dtype,
            max_model_len=length,
            max_num_seqs=job["batch"],
            enable_prefix_caching=False,
            seed=job["seed"],
        )
        return {**timed(vllm, engine, job), "threads": 0, "engine": f"vLLM {vllm.__version__}"}


def timed(vllm, engine, job):
    """Every repetition's prefill and step, and what all took."""
    wall, cpu = 0.0, 0.0
    samples: list[tuple[float, float]] = []
    requests: list[tuple[float, float]] = []
    for number in range(job["warmup"] + job["repetitions"]):
        if number == job["warmup"]:
            wall, cpu, samples, requests = time.perf_counter(), time.process_time(), [], []
        first = request(vllm, engine, job, number, 1)
        begin = time.monotonic()
        whole = request(vllm, engine, job, number, job["output_tokens"] + 1)
        requests.append((begin, time.monotonic()))
        samples.append((first, decode_step(first, whole, job["output_tokens"])))
    return {
        "requests_s": requests,
        "prefill_ms": [1e3 * first for first, _ in samples],
        "decode_ms": [1e3 * step for _, step in samples],
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
    }


def decode_step(first, whole, tokens):
    """Seconds of a step from those of a request of one token and of one with so many more."""
    if whole <= first:
        raise SystemExit(
            f"more tokens took less time, {1e3 * whole:.3g} ms after {1e3 * first:.3g} ms: the machine was busy; "
            "measure again, or with more --output-tokens"
        )
    return (whole - first) / tokens


def request(vllm, engine, job, number, tokens):
    """Seconds of a batch of prompts that no earlier one equals."""
    vocabulary, length = job["architecture"]["vocabulary"], job["input_tokens"]
    prompts = [
        {"prompt_token_ids": [(7 * i + 13 * b + 31 * number + 2) % (vocabulary - 2) + 2 for i in range(length)]}
        for b in range(job["batch"])
    ]
    sampling = vllm.SamplingParams(
        max_tokens=tokens, min_tokens=tokens, ignore_eos=True, temperature=0.0, detokenize=False
    )
    begin = time.perf_counter()
    engine.generate(prompts, sampling, use_tqdm=False)
    return time.perf_counter() - begin


if __name__ == "__main__":
    # vLLM and the processes it starts print to standard output, some of it when all is over
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer.write("\n" + json.dumps(measure(json.load(sys.stdin))) + "\n")
    answer.flush()
