"""A result as a reader sees it, built once: sections of sentences, tables and figures. Renderers for terminal, HTML and Markdown know nothing of what a result is.

Knows no command, no terminal and no page: they render it.
"""
