"""The live token pane: the app's own script, hosted by anywidget. Imported only if it is there."""

import json
from functools import cache
from importlib import resources

import anywidget
import traitlets

from specviz.views.theme import css_variables


@cache
def script() -> str:
    """Return the module anywidget loads: the pane's script as text, then what hosts it."""
    style = css_variables() + _asset("ui/components/token_pane.css") + _asset("notebook/pane.css")
    given = {"script": _asset("ui/components/token_pane.js"), "style": style}
    return f"const PANE = {json.dumps(given)};\n{_asset('notebook/pane.js')}"


def _asset(name: str) -> str:
    place = resources.files("specviz")
    for part in name.split("/"):
        place = place / part
    return place.read_text("utf-8")


class PaneWidget(anywidget.AnyWidget):
    """What the page and the kernel share: the run, the rounds shown and the token picked."""

    _esm = traitlets.Unicode(script()).tag(sync=True)
    run = traitlets.Dict().tag(sync=True)
    shown = traitlets.Int(0).tag(sync=True)
    selected = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)

    def view(self) -> dict[str, object]:
        """Return the entry of a MIME bundle that shows this widget."""
        bundle = self._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        return {key: value for key, value in (data or {}).items() if "widget-view" in key}
