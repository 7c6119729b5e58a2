"""Files as we read and write them: YAML with lines and all faults at once, tables and pictures written whole, no link followed.

It knows errors, and nothing of architectures, studies or searches.
"""
