"""Speedup against D and G, measured live."""

from specviz.ui import sweep

sweep.show()
