"""Hardware fit: what a model's shape and a GPU leave room for, and what to serve it with."""

from collections.abc import Callable

import streamlit as st

from specviz.cost.advise import Advice, advise
from specviz.cost.model_card import facts
from specviz.cost.reasons import headline, sentences, title
from specviz.errors import SpecvizError
from specviz.ui import address
from specviz.ui.hardware_charts import draw, lines
from specviz.ui.hardware_inputs import Asked, sidebar
from specviz.ui.hardware_link import SECTIONS, notes, query
from specviz.ui.hardware_recorded import measured
from specviz.ui.hardware_serving import buys, operating, serve
from specviz.ui.messages import literal
from specviz.ui.table import table
from specviz.views.hardware_roofline import free_rows_chart, roofline_chart
from specviz.views.hardware_speedup import speedup_chart
from specviz.views.hardware_surface import surface_chart
from specviz.views.hardware_tiles import PICKED, ladder_chart, tiles_chart
from specviz.words import _

Section = Callable[[Advice, Asked], None]


def show() -> None:
    """Draw the page; the address comes last, its component takes room."""
    _page()
    address.show(query())


def _page() -> None:
    asked = sidebar()
    st.markdown(f"## {_('Hardware fit')}")
    for note in notes():
        st.warning(literal(note), icon=":material/info:")
    if asked.question is None:
        st.info(literal(asked.problem), icon=":material/info:")
        return
    try:
        advice = advise(asked.question)
    except SpecvizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    _head(advice)
    _sections()[_chosen()](advice, asked)


def _chosen() -> str:
    names = {
        "fit": _("Fit"),
        "tiles": _("Tiles and edges"),
        "measured": _("Measured"),
        "operating": _("Operating point"),
        "buys": _("What it buys"),
        "serve": _("Serve it"),
        "mechanisms": _("Drafters"),
    }
    chosen = st.segmented_control(
        _("Section"),
        SECTIONS,
        required=True,
        format_func=names.__getitem__,
        key="hw_section",
        label_visibility="collapsed",
        persist_state="session",
    )
    return str(chosen)


def _sections() -> dict[str, Section]:
    return {
        "fit": _fit,
        "tiles": _tiles,
        "measured": measured,
        "operating": operating,
        "buys": buys,
        "serve": serve,
        "mechanisms": _mechanisms,
    }


def _head(advice: Advice) -> None:
    place, point = advice.question.place, advice.optimum
    st.caption(
        literal(
            _("{model} on {gpu} · batch {batch} · context {context} · times modelled").format(
                model=place.shape.name,
                gpu=place.gpu.title if place.tp == 1 else f"{place.tp} x {place.gpu.title}",
                batch=place.batch,
                context=place.context,
            )
        )
    )
    with st.container(horizontal=True, gap="small"):
        _metric(_("G"), str(advice.group_size), _("query heads per KV head"))
        _metric(
            _("D* = {tile}/G - 1").format(tile=advice.tile),
            str(advice.d_star),
            _("the simple rule"),
        )
        advised = _("D = {d}").format(d=point.draft_length)
        _metric(
            _("Advised"), title(advice.scheme), advised if point.draft_length else _("no drafts")
        )
        _metric(_("Speedup"), f"{point.speedup:.2f}x", _("modelled"))
        _metric(_("Plain pass"), f"{1000 * advice.plain.seconds:.2f} ms", _("modelled"))
    if place.memory > place.gpu.memory:
        text = _("Does not fit: {need} GB of weights and cache on each GPU, which has {has} GB.")
        st.warning(
            text.format(need=f"{place.memory / 1e9:.0f}", has=f"{place.gpu.memory / 1e9:.0f}"),
            icon=":material/memory:",
        )


def _metric(label: str, value: str, note: str) -> None:
    st.metric(label, value, delta=note, delta_arrow="off", delta_color="off", width=176)


def _fit(advice: Advice, asked: Asked) -> None:
    draw(speedup_chart(advice))
    draw(free_rows_chart(advice))
    st.markdown(f"##### {_('Why')}")
    lines([line for line in sentences(advice) if line != headline(advice)])
    st.markdown(f"##### {_('The model')}")
    place = advice.question.place
    card = facts(place.shape, place.tp)
    columns = (_("What"), _("Value"))
    table(columns, [(fact.name, fact.value) for fact in card], _("The model's shape"))


def _tiles(advice: Advice, asked: Asked) -> None:
    picked = draw(tiles_chart(advice), PICKED)
    draw(ladder_chart(advice, str(picked[0].get(PICKED, "")) if picked else ""))
    draw(roofline_chart(advice))
    surface = surface_chart(advice) if advice.choices else None
    if surface is None:
        st.caption(_("All heads of this model share one latent: its G cannot be turned."))
    else:
        draw(surface)


def _mechanisms(advice: Advice, asked: Asked) -> None:
    from specviz.cost.mechanisms import SOURCE, mechanisms

    best = {choice.scheme: choice.best for choice in advice.choices}
    rows = []
    for row in mechanisms():
        points = [best[scheme] for scheme in row.schemes if scheme in best]
        here = max((p.speedup for p in points), default=None)
        rows.append(
            (
                row.name,
                "-" if here is None else f"{here:.2f}x",
                row.verdict,
                row.module,
                row.inputs,
                row.runs,
                row.latency,
                row.shipped,
                row.training,
                row.memory,
            )
        )
    columns = (
        _("Drafter"),
        _("Here, modelled"),
        _("NVIDIA's verdict"),
        _("Module"),
        _("Reads"),
        _("Runs"),
        _("Latency"),
        _("Shipped as"),
        _("Training"),
        _("Extra memory"),
    )
    st.markdown(f"##### {_('Six mechanisms to choose from')}")
    table(columns, rows, _("NVIDIA's table of six mechanisms beside the speedups modelled here"))
    st.caption(
        literal(
            _("Published: {source}, in our words. A dash: no acceptance figure to rank by.").format(
                source=SOURCE
            )
        )
    )
