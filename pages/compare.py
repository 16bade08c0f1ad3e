"""The same prompts through several schemes, side by side."""

from specviz.ui import compare

compare.show()
