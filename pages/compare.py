"""The same prompts through several schemes, side by side."""

from specviz.ui import compare, entry

entry.through_app()
compare.show()
