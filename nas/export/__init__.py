"""Candidates made into what training and inference stacks read: recipes, tensors, tokenizers, manifests, their verification.

The stacks `hf` and `trainer` are in `nas.export.stacks`, the others in the package `plas_stacks`, one file each.
"""
