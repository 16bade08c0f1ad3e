"""A model, a GPU and a load: which drafter and D fit, and how to serve them."""

from specviz.ui import entry, hardware

entry.through_app()
hardware.show()
