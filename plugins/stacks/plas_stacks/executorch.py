"""ExecuTorch: a .pte file for XNNPACK, with random weights (--weights); inference on phones."""

from plas_stacks.engine import Engine

ENGINE = Engine(
    name="executorch",
    label="ExecuTorch",
    packages=("executorch",),
    module="executorch.runtime",
    file="model.pte",
    tolerance={"fp32": 1e-3, "int8": 0.1, "int4": 0.5},
)
