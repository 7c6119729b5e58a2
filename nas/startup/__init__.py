"""What happens before a command imports anything else: the import path and Ctrl-C.

It may import nothing but what the interpreter itself has loaded.
"""
