"""OpenVINO: optimum-intel converts, OpenVINO GenAI generates and times, its graph gives logits; weights lie beside `file`."""

import sys
from math import prod
from pathlib import Path

import numpy as np
import openvino

sys.modules["torchvision"] = None  # type: ignore[assignment]  # no text model needs it, and one built for another torch cannot be imported
BESIDE = ("/scale", "/zero_point")  # names of what NNCF puts beside compressed weights


def convert(job):
    """As its command line does; embedding and head have 8 bits beside weights of 4."""
    from optimum.commands.optimum_cli import main

    given = ["-m", job["hf"], "--task", "text-generation-with-past", "--weight-format", job["precision"]]
    sys.argv[1:] = ["export", "openvino", *given, str(Path(job["file"]).parent)]
    main()


def matrices(job):
    """Elements of constants of several dimensions, but for what belongs to compressed weights."""
    constants = [
        node for node in openvino.Core().read_model(job["file"]).get_ops() if node.get_type_name() == "Constant"
    ]
    shapes = [node.get_output_shape(0) for node in constants if not node.get_friendly_name().endswith(BESIDE)]
    return sum(prod(shape) for shape in shapes if sum(length > 1 for length in shape) > 1)


def first_logits(job, ids):
    """Those of the graph in 32 bits, as the pipeline gives none."""
    run = openvino.Core().compile_model(job["file"], "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    places = np.arange(len(ids), dtype=np.int64)[None]
    values = {"attention_mask": np.ones_like(places), "position_ids": places, "beam_idx": np.zeros(1, np.int32)}
    names = {name for each in run.model_inputs for name in each.names}
    given = {"input_ids": np.array([ids], np.int64), **{name: value for name, value in values.items() if name in names}}
    return run.infer(given)["logits"][0, -1].tolist()


def load(job):
    """The pipeline; weights of 32 bits are computed with in as many."""
    import openvino_genai

    exact = {"INFERENCE_PRECISION_HINT": "f32"} if job["precision"] == "fp32" else {}
    folder = str(Path(job["file"]).parent)
    pipeline = openvino_genai.LLMPipeline(folder, "CPU", INFERENCE_NUM_THREADS=job["threads"], **exact)
    return {"pipeline": pipeline, "turn": 0}


def answered(loaded, job, tokens):
    """A request whose prompt begins like no earlier one: the pipeline keeps what it has read."""
    import openvino_genai

    loaded["turn"] += 1
    ids = [(7 * i + 31 * loaded["turn"]) % 256 for i in range(job["input_tokens"])]
    how = openvino_genai.GenerationConfig(
        max_new_tokens=tokens, min_new_tokens=tokens, ignore_eos=True, do_sample=False
    )
    return loaded["pipeline"].generate(openvino.Tensor(np.array([ids], np.int64)), how)


def generated(loaded, job):
    """Tokens of a request."""
    return len(answered(loaded, job, job["output_tokens"]).tokens[0])


def repetition(loaded, job):
    """By the pipeline's own clock."""
    metrics = answered(loaded, job, job["output_tokens"] + 1).perf_metrics
    return metrics.get_ttft().mean, metrics.get_tpot().mean
