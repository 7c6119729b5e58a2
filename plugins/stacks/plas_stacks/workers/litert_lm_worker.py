"""LiteRT-LM: litert-torch writes the file, LiteRT-LM generates and times, LiteRT's interpreter gives the logits of the model inside."""

import os
import shutil
import tempfile
from math import prod

import numpy as np

RECIPES = {"fp32": "none", "int8": "dynamic_wi8_afp32", "int4": "dynamic_wi4b32_afp32"}
CHUNK = 128  # tokens of a prompt that are read at once


def convert(job):
    """Write the file, with room for the workload in whole chunks: every step reads all of it."""
    from litert_torch.generative.export_hf.export import export

    with tempfile.TemporaryDirectory(dir=os.path.dirname(job["file"])) as folder:
        export(
            model=job["hf"],
            output_dir=folder,
            prefill_lengths=[CHUNK],
            cache_length=CHUNK * -(-max(job["tokens"], 2 * CHUNK) // CHUNK),
            quantization_recipe=RECIPES[job["precision"]],
            bundle_litert_lm=True,
        )
        shutil.move(os.path.join(folder, "model.litertlm"), job["file"])


def inside(job):
    """The model of prefill and decode in the file."""
    from litert_lm_builder import litertlm_peek

    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nowhere:
        litertlm_peek.peek_litertlm_file(job["file"], folder, nowhere)
        (name,) = (name for name in os.listdir(folder) if name.endswith("tf_lite_prefill_decode.tflite"))
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()


def matrices(job):
    """Elements of matrices in the file, each buffer once."""
    from ai_edge_litert import schema_py_generated as schema

    model, sizes = schema.Model.GetRootAs(inside(job), 0), {}
    kinds = schema.TensorType.FLOAT32, schema.TensorType.INT8, schema.TensorType.INT4
    for graph in map(model.Subgraphs, range(model.SubgraphsLength())):
        for tensor in map(graph.Tensors, range(graph.TensorsLength())):
            buffer = model.Buffers(tensor.Buffer())
            if tensor.ShapeLength() == 2 and tensor.Type() in kinds and (buffer.DataLength() or buffer.Size()):
                sizes[tensor.Buffer()] = prod(tensor.ShapeAsNumpy().tolist())
    return sum(sizes.values())


def load(job):
    """The engine's benchmark of the workload; no packed weights are left beside the file."""
    import litert_lm

    litert_lm.set_min_log_severity(litert_lm.LogSeverity.ERROR)
    backend = litert_lm.Backend.CPU(thread_count=job["threads"])
    lengths = job["input_tokens"], job["output_tokens"]
    return litert_lm.Benchmark(job["file"], backend, *lengths, max_num_tokens=sum(lengths), cache_dir=":nocache")


def generated(loaded, job):
    """Tokens that it generates after the prompt."""
    return loaded.run().last_decode_token_count


def repetition(loaded, job):
    """Milliseconds of a prefill and of a decode step, by the engine's own clock."""
    info = loaded.run()
    return (
        1e3 * info.last_prefill_token_count / info.last_prefill_tokens_per_second,
        1e3 / info.last_decode_tokens_per_second,
    )


def first_logits(job, ids):
    """Logits after a prompt whose tokens are read one by one."""
    from ai_edge_litert.interpreter import Interpreter

    step = Interpreter(model_content=inside(job)).get_signature_runner("decode")
    state = {name: np.zeros(one["shape"], one["dtype"]) for name, one in step.get_input_details().items()}
    for place, token in enumerate(ids):
        state["tokens"][:], state["input_pos"][:] = token, place
        state["mask"][...] = np.where(np.arange(state["mask"].shape[-1]) <= place, 0, -np.inf)
        out = step(**state)
        state |= {name: value for name, value in out.items() if name in state}
    return out["logits"].ravel().tolist()
