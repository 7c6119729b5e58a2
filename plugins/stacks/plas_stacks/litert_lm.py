"""LiteRT-LM: a .litertlm file by litert-torch, with random weights (--weights); inference on phones."""

from plas_stacks.engine import Engine

ENGINE = Engine(
    name="litert_lm",
    label="LiteRT-LM",
    packages=("litert-torch", "litert-lm"),
    module="litert_lm",
    file="model.litertlm",
)
