"""A guided tour, the words, a clinic for symptoms, and myths with their numbers."""

from specviz.ui import entry, learn

entry.through_app()
learn.show()
