"""The work of the commands, a file each under the command's name: `nas/select.py` parses, `nas/work/select.py` does it.

It knows every room; nothing but the doors knows it.
"""
