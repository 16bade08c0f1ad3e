"""A guided tour, the words, a clinic for symptoms, and myths with their numbers."""

from specviz.ui import learn

learn.show()
