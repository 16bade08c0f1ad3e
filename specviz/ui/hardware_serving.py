"""Three sections of Hardware fit about serving: operating point, what it buys, configurations."""

import streamlit as st

from specviz.cost.advise import Advice, Choice
from specviz.cost.chain import Chain, Latency, drawn_lengths, simulate
from specviz.cost.operating import Plan, at_speed, fleet, ratios
from specviz.cost.reasons import title
from specviz.engines import ENGINES, export
from specviz.engines.plan import DRAFT, NEED_DRAFT, TARGET
from specviz.engines.plan import Plan as Served
from specviz.errors import SpecvizError
from specviz.ui.hardware_charts import draw
from specviz.ui.hardware_inputs import Asked
from specviz.ui.messages import literal
from specviz.ui.table import table
from specviz.views.hardware_buys import fleet_columns, fleet_reading, fleet_rows, latency_chart
from specviz.views.hardware_operating import operating_chart
from specviz.words import _

MOST_CURVES = 4  # schemes beside plain decoding


def plans(advice: Advice) -> list[Plan]:
    """Return plain decoding and, fastest first, every scheme at its best D."""
    question = advice.question
    found = [Plan(question.place)]
    for choice in advice.choices[:MOST_CURVES]:
        length = choice.best.draft_length or 1
        found.append(
            Plan(question.place, choice.scheme, length, choice.profile, question.draft_model)
        )
    return found


def name_of(plan: Plan) -> str:
    """Return a plan's name for tables and legends."""
    if not plan.draft_length:
        return title("none")
    return _("{scheme}, D = {d}").format(scheme=title(plan.scheme), d=plan.draft_length)


def _room(known: list[Plan]) -> bool:
    """Say so and return False where the weights alone do not fit."""
    if known[0].most_batch() and len(known) > 1:
        return True
    st.warning(
        _("The weights do not fit this GPU: use more GPUs, smaller weights or another GPU."),
        icon=":material/memory:",
    )
    return False


def operating(advice: Advice, asked: Asked) -> None:
    """Draw throughput against speed, and read it both ways."""
    known = plans(advice)
    if not _room(known):
        return
    plain = known[0]
    fastest = plain.at(1).per_user
    left, right = st.columns(2)
    share = left.slider(
        _("Fixed speed, % of the fastest plain decoding"),
        10,
        200,
        90,
        5,
        key="hw_speed",
        help=_("Plain decoding at batch 1 is 100%."),
        persist_state="session",
    )
    most = min(plan.most_batch() for plan in known)
    batch = right.slider(
        _("Fixed concurrency, sequences at once"),
        1,
        max(2, min(most, 512)),
        min(max(2, min(most, 512)), 32),
        key=f"hw_at_batch-{min(most, 512)}",
    )
    found = ratios(plain, known[1], fastest * share / 100, int(batch))
    same, speed = st.columns(2)
    same.metric(
        _("At the same concurrency"),
        f"{found.concurrency:.2f}x",
        delta=_("throughput per GPU"),
        delta_arrow="off",
        delta_color="off",
    )
    speed.metric(
        _("At the same speed per user"),
        _("no limit") if found.interactivity is None else f"{found.interactivity:.2f}x",
        delta=_("throughput per GPU"),
        delta_arrow="off",
        delta_color="off",
    )
    draw(operating_chart(known, found))


def buys(advice: Advice, asked: Asked) -> None:
    """Draw the latency of a chain of agent calls, and GPUs for a traffic."""
    known = plans(advice)
    if not _room(known):
        return
    _chain(advice, asked, known)
    _fleet(known)


def _chain(advice: Advice, asked: Asked, known: list[Plan]) -> None:
    one, two, three = st.columns(3)
    calls = one.number_input(_("Agent calls in a row"), 1, 500, 20, key="hw_calls")
    tokens = two.number_input(_("Tokens per call"), 1, 20_000, 400, step=50, key="hw_tokens")
    wait = three.number_input(
        _("Seconds per call outside decoding"), 0.0, 600.0, 0.5, step=0.5, key="hw_wait"
    )
    chain = Chain(calls=int(calls), tokens=int(tokens), wait=float(wait))
    batch = advice.question.place.batch
    found = {name_of(plan): _latency(chain, plan, batch, asked) for plan in (known[0], known[1])}
    draw(latency_chart(chain, found, measured=bool(asked.lengths)))
    if asked.lengths:
        text = _("Rounds drawn from {n} measured ones, in stretches of neighbours.")
        st.caption(text.format(n=len(asked.lengths)))
    else:
        st.caption(
            _(
                "Rounds drawn from the acceptance profile, each by itself (modelled). Choose the "
                "run on the Step page at the left to draw from measured rounds, bursts included."
            )
        )


def _latency(chain: Chain, plan: Plan, batch: int, asked: Asked) -> Latency:
    if plan.profile is None:
        lengths: tuple[int, ...] | list[int] = (1,)
    else:
        lengths = asked.lengths or drawn_lengths(plan.profile, plan.draft_length)
    return simulate(chain, lengths, plan.round_seconds(batch))


def _fleet(known: list[Plan]) -> None:
    st.markdown(f"##### {_('GPUs and cost for a traffic')}")
    slowest = known[0].at(1).per_user
    one, two, three = st.columns(3)
    traffic = one.number_input(_("Tokens/s in all"), 1, 10_000_000, 20_000, 1000, key="hw_traffic")
    share = two.number_input(
        _("Speed for every user, % of plain at batch 1"), 1, 400, 80, 5, key="hw_limit"
    )
    price = three.number_input(_("Price of a GPU and hour"), 0.0, 1000.0, 3.0, 0.5, key="hw_price")
    wanted = slowest * share / 100
    found = {name_of(p): fleet(p, float(traffic), wanted, float(price)) for p in known}
    reading = fleet_reading(found)
    table(fleet_columns(), fleet_rows(found), reading)
    text = _("{reading} Every user gets at least {n} tokens/s (modelled).")
    st.caption(literal(text.format(reading=reading, n=f"{wanted:.0f}")))
    if at_speed(known[0], wanted) is None:
        st.caption(_("Plain decoding does not reach this speed at any batch."))


def serve(advice: Advice, asked: Asked) -> None:
    """Offer a configuration of every engine for a scheme and D, ready to copy."""
    schemes = [choice.scheme for choice in advice.choices] or ["ngram"]
    one, two = st.columns(2)
    scheme = str(
        one.selectbox(_("Drafter"), schemes, format_func=title, key=f"hw_serve-{advice.scheme}")
    )
    best = next((c for c in advice.choices if c.scheme == scheme), None)
    length = two.number_input(
        _("D, drafted tokens per round"),
        1,
        64,
        _length(best),
        key=f"hw_serve_d-{scheme}-{_length(best)}",
    )
    target = one.text_input(_("Target"), TARGET, key="hw_target", persist_state="session")
    draft = DRAFT
    if scheme in NEED_DRAFT:
        draft = two.text_input(_("Draft model or head"), DRAFT, key="hw_draft",
                               persist_state="session") or DRAFT  # fmt: skip
    for engine in ENGINES:
        _engine(engine, scheme, int(length), (target or TARGET, draft))


def _length(best: Choice | None) -> int:
    return max(1, best.best.draft_length) if best else 5


def _engine(engine: str, scheme: str, length: int, names: tuple[str, str]) -> None:
    try:
        plan = Served(scheme=scheme, draft_length=length, target=names[0], draft=names[1])
        snippet = export(engine, plan)
    except SpecvizError as error:
        st.markdown(f"##### {literal(engine)}")
        st.warning(literal(str(error)), icon=":material/block:")
        return
    st.markdown(f"##### {literal(snippet.engine)}")
    st.code(snippet.text, language=snippet.language, wrap_lines=True)
    source = _("Keys of {engine} {version}.").format(engine=snippet.engine, version=snippet.version)
    st.caption(literal(" ".join((source, *snippet.notes))))
