"""The runs there are, two of them side by side, and files in and out."""

from specviz.ui import entry, traces

entry.through_app()
traces.show()
