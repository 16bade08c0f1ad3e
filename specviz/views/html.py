"""The one place where text becomes markup."""

from html import escape as _escape

# These elements have no content and no end tag.
VOID = frozenset({"br", "hr", "img"})


class Markup(str):
    """A string that is markup already; `tag` puts it in as it is, anything else is escaped."""

    __slots__ = ()


NOTHING = Markup("")


def escape(text: str) -> Markup:
    """Return `text` as inert markup, for content and for attribute values."""
    return Markup(_escape(text, quote=True))


def join(*parts: str) -> Markup:
    """Concatenate, escaping every part that is not markup."""
    return Markup("".join(p if isinstance(p, Markup) else escape(p) for p in parts))


def tag(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """Return one element; children that are not `Markup` are escaped.

    Attribute names lose a trailing underscore and turn other underscores into hyphens (`class_`,
    `aria_label`); None leaves an attribute out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID and not children:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def _attribute(value: str | float | None) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def chart_text(text: str) -> str:
    """Return `text` for a Plotly label, which reads a subset of HTML and entities.

    Besides `<`, `>` and `&`, a `$` at both ends would start MathJax, so it is written as an entity.
    Plotly collapses spaces and has no line breaks in labels, so both are made visible.
    """
    shown = visible(text)
    return str(escape(shown)).replace("$", "&#36;")


def visible(text: str, *, spaces: bool = True) -> str:
    """Return `text` with its white space drawn: · for a space, ↵ for a line end, ⇥ for a tab."""
    return text.translate(_DRAWN if spaces else _CONTROLS)


_CONTROLS = {code: chr(0x2400 + code) for code in range(32)}
_CONTROLS |= {ord("\n"): "↵", ord("\r"): "␍", ord("\t"): "⇥"}
_DRAWN = {ord(" "): "·", **_CONTROLS}
