"""ExecuTorch: a .pte file for XNNPACK, with random weights (--weights); inference on phones."""

from plas_stacks.engine import Engine

ENGINE = Engine(
    name="executorch",
    label="ExecuTorch",
    packages=("executorch",),
    module="executorch.runtime",
    file="model.pte",
)
