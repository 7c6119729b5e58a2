"""ExecuTorch: transformers' export with a static cache, lowered to XNNPACK; torchao quantises matrices of layers and head."""

import json
import os
import tempfile
import time
from math import prod

BITS = {"int8": 8, "int4": 4}
GROUP = 32  # weights of a row that share a scale
LEAST = 64  # tokens of the cache


def convert(job):
    """Write the file, with a cache of the workload's tokens and prompts of any length; a tied embedding is stored beside the head."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from transformers import AutoModelForCausalLM, GenerationConfig
    from transformers.integrations.executorch import TorchExportableModuleForDecoderOnlyLM

    model = AutoModelForCausalLM.from_pretrained(job["hf"], dtype=torch.float32, attn_implementation="sdpa").eval()
    most = max(job["tokens"], LEAST)
    room = {"batch_size": 1, "max_cache_len": most}
    static = {"use_cache": True, "cache_implementation": "static", "max_length": most}
    model.generation_config = GenerationConfig(**static, cache_config=room)
    if job["precision"] in BITS:
        quantise(model, BITS[job["precision"]])
    ids, length = torch.zeros((1, 3), dtype=torch.long), torch.export.Dim("length", min=1, max=most - 1)
    shapes = {"input_ids": {1: length}, "cache_position": {0: length}}
    exportable = TorchExportableModuleForDecoderOnlyLM(model, **room)
    exported = exportable.export(input_ids=ids, cache_position=torch.arange(3), dynamic_shapes=shapes, strict=True)
    config = EdgeCompileConfig(_check_ir_validity=False)
    lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()], compile_config=config)
    with open(job["file"], "wb") as file:
        file.write(lowered.to_executorch().buffer)


def quantise(model, bits):
    """Weights in 8 bits by row or 4 bits by group, activations in 8 bits as they come."""
    import torch
    from torchao.quantization.granularity import PerAxis, PerGroup
    from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig, quantize_

    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    by = PerGroup(GROUP) if bits == 4 else PerAxis(0)
    kind = getattr(torch, f"int{bits}")
    quantize_(model, Int8DynamicActivationIntxWeightConfig(weight_dtype=kind, weight_granularity=by))


def matrices(job):
    """Elements of matrices in the file: embeddings, and what XNNPACK holds but a head that is tied to them."""
    from executorch.backends.xnnpack.serialization.xnnpack_graph_serialize import XNNHeader, _get_schema_bytes
    from executorch.exir._serialize._flatbuffer import _flatc_decompile
    from executorch.exir._serialize._program import deserialize_pte_binary

    with open(job["file"], "rb") as file:
        program = deserialize_pte_binary(file.read()).program
    plan = program.execution_plan[0]
    sizes = [prod(v.val.sizes) for v in plan.values if getattr(v.val, "data_buffer_idx", 0) and len(v.val.sizes) == 2]
    with tempfile.TemporaryDirectory() as folder:
        schema = os.path.join(folder, "schema.fbs")
        with open(schema, "wb") as file:
            file.write(_get_schema_bytes())
        for delegate in plan.delegates:
            data = program.backend_delegate_data[delegate.processed.index].data
            header = XNNHeader.from_bytes(data[: XNNHeader.EXPECTED_LENGTH])
            path = os.path.join(folder, "graph.bin")
            with open(path, "wb") as file:
                file.write(data[header.flatbuffer_offset : header.flatbuffer_offset + header.flatbuffer_size])
            _flatc_decompile(folder, schema, path)
            with open(os.path.join(folder, "graph.json"), encoding="utf-8") as file:
                graph = json.load(file)
            values = (one["xvalue_union"].get("tensor_value", one["xvalue_union"]) for one in graph["xvalues"])
            sizes += [prod(one["dims"]) for one in values if one["constant_buffer_idx"] and one["num_dims"] == 2]
    with open(os.path.join(job["hf"], "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    return sum(sizes) - config["tie_word_embeddings"] * config["vocab_size"] * config["hidden_size"]


def opened(job):
    """The method of the file, on as many threads as the job says."""
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    portable_lib._unsafe_reset_threadpool(job["threads"])
    return Runtime.get().load_program(job["file"]).load_method("forward")


def step(method, ids, place):
    """Logits after tokens that begin at a place."""
    import torch

    (logits,) = method.execute([torch.tensor([ids]), torch.arange(place, place + len(ids))])
    return logits[0, -1]


def first_logits(job, ids):
    """Logits after a prompt."""
    return step(opened(job), ids, 0).tolist()


def load(job):
    """The method, and a prompt."""
    return opened(job), [3] * job["input_tokens"]


def generated(loaded, job):
    """Tokens after the prompt, each the most probable one."""
    method, ids = loaded
    logits, count = step(method, ids, 0), 1
    while count < job["output_tokens"]:
        logits = step(method, [int(logits.argmax())], len(ids) + count - 1)
        count += 1
    return count


def repetition(loaded, job):
    """Milliseconds of a prefill and of the mean decode step after it."""
    (method, ids), begin = loaded, time.perf_counter()
    token = int(step(method, ids, 0).argmax())
    prefilled = time.perf_counter()
    for place in range(len(ids), len(ids) + job["output_tokens"]):
        token = int(step(method, [token], place).argmax())
    return 1e3 * (prefilled - begin), 1e3 * (time.perf_counter() - prefilled) / job["output_tokens"]
