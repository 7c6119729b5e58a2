"""OpenVINO: a graph by optimum-intel, with random weights (--weights); inference on PCs."""

from plas_stacks.engine import Engine

ENGINE = Engine(
    name="openvino",
    label="OpenVINO",
    packages=("optimum-intel", "openvino-genai"),
    module="openvino_genai",
    file="openvino_model.xml",
)
