"""The way to our `kernels`: the folder beside this package, whatever else has its name."""

from importlib import import_module
from pathlib import Path

BESIDE = Path(__file__).parents[2] / "kernels"


def find_own_kernels() -> None:
    """Make `import kernels.tree_attention` find ours; to be called before it.

    Hugging Face has a package `kernels` too, and transformers imports from it where it is
    installed. Ours has no `__init__`, so an installed one is found first and stays whole; our
    folder then only joins the places where its modules are looked for.
    """
    places = import_module("kernels").__path__
    if str(BESIDE) not in places:
        places.append(str(BESIDE))
