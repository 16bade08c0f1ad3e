"""Names and one-sentence descriptions of what a control offers."""

from specviz.words import _


def verifier(name: str) -> str:
    """Return a verifier's name for people."""
    return {
        "auto": _("automatic"),
        "greedy": _("greedy"),
        "sampled": _("rejection sampling"),
        "block": _("block verification"),
    }[name]


def detail(name: str) -> str:
    """Say how much of every round is kept."""
    return {
        "full": _("full: the top of p and q in every row"),
        "light": _("light: p and q of drafted tokens"),
        "off": _("off: tokens and times only"),
    }[name]


def speed(name: str) -> str:
    """Return the name of a playing speed."""
    return {
        "teach-slow": _("Teaching time, 1.5 s per step"),
        "teach": _("Teaching time, 0.7 s per step"),
        "teach-fast": _("Teaching time, 0.3 s per step"),
        "measured-20": _("Measured time, 20x slower"),
        "measured-5": _("Measured time, 5x slower"),
        "measured": _("Measured time"),
    }[name]


def keys(name: str) -> str:
    """Return the name of a set of shortcut keys."""
    return {"arrows": _("Arrows"), "letters": _("Letters"), "off": _("Off")}[name]
