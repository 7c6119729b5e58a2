"""A library of one's own: blocks made from a Hugging Face model's layers, scored one at a time, and mixtures assembled.

It knows the texts and tokenizers of training and libraries of blocks; nothing of how blocks are chosen.
"""
