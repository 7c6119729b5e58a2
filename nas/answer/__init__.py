"""The answer of a run: everything that follows from what it evaluated, as files, sentences, tables and pictures, and read again.

It knows searches, records and exact solutions; every command that shows a run or a design stands above it.
"""
