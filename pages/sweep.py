"""Speedup against D and G, measured live."""

from specviz.ui import entry, sweep

entry.through_app()
sweep.show()
