"""What the notebooks use beside the package itself: runs, the token pane, figures, checks."""

from specviz.notebook.figures import draw
from specviz.notebook.pane import Pane
from specviz.notebook.runs import decode, model

__all__ = ["Pane", "decode", "draw", "model"]
