"""Everything between a command and the person at the screen: flags, streams that hold, printing, plots made of characters.

It knows files and errors, and nothing of architectures, studies or searches.
"""
