"""Text that tokens hold: bytes per token over the size of a vocabulary, and what a smaller vocabulary costs per byte."""
