"""A run as one HTML file: it opens from disk, asks the network for nothing, steps by keyboard.

The file holds the token pane of the app, the run as compressed data, and a policy that forbids
every request and every script but its own. Token text is in the data alone, so it is no markup.
"""

import base64
import hashlib
import json
import zlib
from importlib import resources

from specviz import __version__
from specviz.events import Round
from specviz.metrics import summarise
from specviz.traces.schema import Trace
from specviz.traces.timeline import durations
from specviz.views import theme
from specviz.views.cards import cards
from specviz.views.decision import Decision, Settings, decision
from specviz.views.html import NOTHING, Markup, join, tag
from specviz.views.sentences import sentence
from specviz.views.spelling import quote
from specviz.views.tokens import PaneOptions, Reveal, pane
from specviz.words import _, language

Json = dict[str, object]

_TOKEN_LINES = 4  # lines of a card that say nothing of the verdict


def replay(trace: Trace) -> str:
    """Return the file; `redact` the trace first to leave the prompt out.

    512 tokens in full detail stay below 1 MB.
    """
    script = _asset("ui/components", "token_pane.js") + _asset("traces", "html_replay.js")
    style = theme.css_variables().replace(".sv-root{", ":root{")
    style += _asset("ui/components", "token_pane.css") + _asset("traces", "html_replay.css")
    raw = json.dumps(_data(trace), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packed = base64.b64encode(zlib.compress(raw.encode("utf-8", "replace"), 9)).decode()
    title = _(trace.title) or _("untitled")
    head = join(
        _void("meta", charset="utf-8"),
        _void("meta", http_equiv="Content-Security-Policy", content=_policy(script, style)),
        _void("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        _void("meta", name_="color-scheme", content="light dark"),
        _void("meta", name_="generator", content=f"specviz {__version__}"),
        tag("title", f"{title} · specviz"),
        _void("link", rel="icon", href="data:,"),
        tag("style", Markup(style)),
    )
    body = join(
        tag("header", tag("h1", title), _facts(trace), class_="rp-head"),
        tag("main", _waiting(trace), id="replay"),
        tag("footer", _footer(trace), class_="rp-foot"),
        tag("script", Markup(packed), type="text/plain", id="run"),
        tag("script", Markup(script), type="module"),
    )
    page = tag("html", tag("head", head), tag("body", body), lang=language().replace("_", "-"))
    return f"<!doctype html>\n{page}\n"


def _asset(folder: str, name: str) -> str:
    place = resources.files("specviz")
    for part in (*folder.split("/"), name):
        place = place / part
    return place.read_text("utf-8")


def _void(element: str, **attributes: str) -> Markup:
    return Markup(tag(element, **attributes).removesuffix(f"</{element}>"))


def _policy(script: str, style: str) -> str:
    """Return a policy that lets this script and this style sheet run and nothing be fetched."""

    def source(text: str) -> str:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        return f"'sha256-{digest}'"

    return (
        f"default-src 'none'; script-src {source(script)}; style-src {source(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _facts(trace: Trace) -> Markup:
    env, config, params = trace.environment, trace.config, trace.params
    heat = _("greedy") if params.greedy else _("temperature {t:g}").format(t=params.temperature)
    facts = [
        _("Recorded on {where}, {date}").format(
            where=f"{env.device_name}, {env.dtype}", date=trace.created[:10]
        ),
        trace.target.name,
        f"{config.scheme}, D = {config.draft_length}",
        heat,
        _("chat template") if trace.chat else _("raw text"),
    ]
    return tag("ul", *(tag("li", fact) for fact in facts), class_="rp-facts")


def _waiting(trace: Trace) -> Markup:
    """What is there before the script runs, and all there is without it."""
    text = _("This replay needs JavaScript and a browser of 2023 or newer. The text of the run:")
    return join(
        tag("div", tag("p", text), tag("pre", trace.text), id="static"),
    )


def _footer(trace: Trace) -> Markup:
    env = trace.environment
    left_out = _("The prompt was left out of this file.") if trace.redacted else ""
    return join(
        tag("p", left_out) if left_out else NOTHING,
        tag("p", f"specviz {env.specviz} · torch {env.torch} · transformers {env.transformers}"),
    )


def _data(trace: Trace) -> Json:
    count = len(trace.rounds)
    options = PaneOptions(height="24rem")
    whole = pane(trace, count, None, options)
    # The legend explains pending drafts from the start, so that nothing moves while one steps.
    legend = pane(trace, count, Reveal(drafted=0), options)["legend"]
    return {
        "pane": whole | {"legend": legend, "details": {}, "live": ""},
        "rounds": [_round(trace, event) for event in trace.rounds],
        "figures": _figures(trace),
        "words": _words(),
    }


def _round(trace: Trace, event: Round) -> Json:
    """Return what happened in one round, in the order of its small steps."""
    settings = Settings(trace.pieces, trace.params, trace.config, trace.undraftable)
    nodes: list[int | str] = [*range(len(event.draft)), "last"]
    return {
        "says": sentence(event, trace.pieces),
        "quotes": [quote(trace.pieces, token) for token in event.draft.tokens],
        "checks": [check.node for check in event.checks],
        "passed": [check.accepted for check in event.checks],
        "parents": None if event.draft.is_chain else event.draft.parents,
        "depths": event.draft.depths,
        "past": event.past_end,
        "seconds": [_short(value) for value in durations(event)],
        "cards": cards(event, trace.pieces),
        "decisions": {
            str(node): _decision(decision(event, node, settings))
            for node in nodes
            if node != "last" or event.last_token is not None
        },
    }


def _decision(shown: Decision) -> Json:
    return {
        "title": shown.title,
        "lines": shown.lines,
        "reading": shown.reading if shown.bars else "",
        "series": shown.series,
        "columns": shown.columns[1:],
        "bars": [(bar.label, _short(bar.p), _short(bar.q), bar.chosen) for bar in shown.bars],
    }


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _figures(trace: Trace) -> Json:
    """Return what the strip of numbers cannot count from the rounds by itself."""
    report = trace.lossless
    kind = report.kind if report else "not-run"
    verdict = {
        "identical": _("identical"),
        "near-tie": _("near tie"),
        "BUG": _("BUG"),
        "sampled": _("sampled"),
        "not-run": _("not checked"),
    }[kind]
    return {
        "verdict": verdict,
        "plain": report.plain_tpot if report else None,
        "timed": summarise(trace.rounds).timing.total > 0,
    }


def _words() -> Json:
    return {
        "start": _("The prompt is read; nothing is drafted yet. Step forward to begin."),
        "draft": _("Round {round}: the drafter proposes {token} as draft {n}."),
        "score": _("Round {round}: the target scores {rows} rows in one pass."),
        "accepted": _("Round {round}: draft {n}, {token}, is accepted."),
        "rejected": _("Round {round}: draft {n}, {token}, is rejected."),
        "decision": _("Decision"),
        "undecided": _("Nothing is decided yet in this round."),
        "own": _("The target's own token"),
        "option": _("Draft {n}: {token}"),
        "round": _("Round"),
        "place": _("{n} of {all} rounds"),
        "moves": {
            "first": _("First"),
            "roundBack": _("Round back"),
            "stepBack": _("Step back"),
            "play": _("Play"),
            "pause": _("Pause"),
            "step": _("Step"),
            "round": _("Round"),
            "last": _("Last"),
        },
        "speed": _("Speed"),
        "speeds": [
            ("step", _("a step each half second")),
            ("round", _("a round each second")),
            ("real", _("as measured")),
            ("slow", _("ten times slower than measured")),
        ],
        "keys": _("Keyboard"),
        "keyHelp": _(
            "Left and Right: step. B and N, Page Up and Page Down: round. Home, End. Space: play."
        ),
        "shade": _("Light or dark"),
        "figures": {
            "length": _("Tokens per round, E[L]"),
            "rate": _("Drafts accepted"),
            "tpot": _("Per output token, recorded"),
            "speedup": _("Speedup, whole run"),
            "verdict": _("Against plain decoding"),
        },
        "none": _("n/a"),
        "under": _("just under 1"),
        "rounds": _("Rounds"),
        "hidden": _TOKEN_LINES,
    }
