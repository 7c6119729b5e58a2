"""ONNX Runtime GenAI: a graph by its model builder, with random weights (--weights); inference on PCs."""

from plas_stacks.engine import Engine

ENGINE = Engine(
    name="onnx_genai",
    label="ONNX Runtime GenAI",
    packages=("onnxruntime-genai",),
    module="onnxruntime_genai",
    file="genai_config.json",
)
