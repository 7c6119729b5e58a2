"""Pairs of a target and the model that drafts its tokens: the exact frontier over all of them."""
