"""Tokenizers trained on a text, or given, and counted on a held-out part of it: bytes per token and entropy over the vocabulary."""
