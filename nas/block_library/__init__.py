"""A library of blocks: what each replacement of a trained parent's layers scores and costs, read, checked and written.

It knows Puzzletron's files and plain tables, and whether the scores were found to add up; nothing of how blocks are chosen.
"""
