"""Candidates made into what training and inference stacks read: recipes, tensors, tokenizers, manifests, their verification.

The stacks themselves are in `nas.export.stacks`, one file each.
"""
