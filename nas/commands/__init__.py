"""The work of the commands that are small, a file each under the command's name: `nas/select.py` parses, `nas/commands/select.py` does it.

Commands with more to them have rooms of their own under their names.
"""
