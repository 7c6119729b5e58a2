"""Libraries of measured replacements of a trained parent's layers, and the frontier of all their mixtures.

Libraries are read from Puzzletron's files and plain tables, or made from a Hugging Face model whose blocks are scored one at a
time; mixtures are solved by labels with dominance and dual bounds.
"""
