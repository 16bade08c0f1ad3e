"""The advice in sentences, each with the numbers it rests on."""

from collections.abc import Iterator

from specviz.cost.advise import Advice, Choice
from specviz.cost.drafting import assumption
from specviz.cost.hardware import SHARES
from specviz.cost.mechanisms import mechanism_of
from specviz.cost.model_card import notes
from specviz.cost.roofline import MOST_ROWS, PARTS, Part
from specviz.words import _, later

TITLES = {
    "none": later("plain decoding"),
    "eagle3": "EAGLE-3",
    "mtp": "MTP",
    "dflash": "DFlash",
    "dspark": "DSpark",
    "ngram": later("n-gram"),
    "suffix": later("suffix"),
    "draft_model": later("draft model"),
}
NEEDS_HEAD = frozenset(("eagle3", "dflash", "dspark"))


def title(scheme: str) -> str:
    """Return the name of a scheme as people write it."""
    return _(TITLES.get(scheme, scheme))


def part_name(part: Part) -> str:
    """Return the name of a part of a pass."""
    return {
        "weights": _("weights"),
        "experts": _("experts"),
        "attention": _("attention"),
        "recurrent": _("recurrent states"),
    }[part]


def sentences(advice: Advice) -> tuple[str, ...]:
    """Return the reasons, most important first."""
    return (
        headline(advice),
        _where_time_goes(advice),
        *_binding(advice),
        rule_sentence(advice),
        edge_sentence(advice),
        *_runner_up(advice),
        *_memory(advice),
        *notes(advice.question.place.shape, advice.question.place.tp),
        provenance(advice),
    )


def headline(advice: Advice) -> str:
    """Say which scheme and D, and how much faster."""
    point, choice = advice.optimum, advice.choice
    if choice is None:
        return _(
            "Do not speculate here: no drafter pays for its drafts at this load, so plain "
            "decoding is fastest (modelled)."
        )
    text = _(
        "{scheme} with D = {d}: {length} tokens per round for {verify} passes of verifying and "
        "{draft} of drafting make {gain}x (modelled)."
    )
    said = text.format(
        scheme=title(advice.scheme),
        d=point.draft_length,
        length=f"{point.expected_length:.2f}",
        verify=f"{point.verify:.2f}",
        draft=f"{point.draft:.2f}",
        gain=f"{point.speedup:.2f}",
    )
    if advice.scheme in NEEDS_HEAD:
        said += " " + _("It needs a head trained for this very model.")
    if choice.extrapolated:
        more = _("Its rates are known for {n} positions; the last one was repeated.")
        said += " " + more.format(n=len(choice.profile.rates))
    return said


def _where_time_goes(advice: Advice) -> str:
    plain = advice.plain
    shares = [
        _("{part} {share}").format(part=part_name(part), share=f"{plain.share(part):.0%}")
        for part in PARTS
        if plain.share(part) >= 0.005
    ]
    shares.append(_("launches {share}").format(share=f"{plain.launch / plain.seconds:.0%}"))
    text = _("One plain pass takes {ms} ms: {shares}.")
    return text.format(ms=f"{1000 * plain.seconds:.2f}", shares=", ".join(shares))


def _binding(advice: Advice) -> Iterator[str]:
    """Name the part whose free rows end first, among those that matter."""
    known = {
        part: rows
        for part, rows in advice.free_rows.items()
        if rows is not None and advice.plain.share(part) >= 0.02
    }
    if not known:
        return
    part = min(known, key=lambda name: known[name])
    counts = ", ".join(
        _("{part} {n}").format(part=part_name(p), n=rows_text(n)) for p, n in known.items()
    )
    if known[part] >= 1 + advice.optimum.draft_length:
        text = _(
            "Rows per sequence that cost nothing: {counts}. None of them ends before D = {d}, so "
            "acceptance and drafting decide, not the hardware."
        )
        yield text.format(counts=counts, d=advice.optimum.draft_length)
        return
    text = _("Rows per sequence that cost nothing: {counts}. The smallest binds: {part}.")
    yield text.format(counts=counts, part=part_name(part))


def rows_text(rows: int | None) -> str:
    """Return a number of free rows; a dash without the part."""
    if rows is None:
        return "-"
    return _("{n} or more").format(n=rows) if rows >= MOST_ROWS else str(rows)


def rule_sentence(advice: Advice) -> str:
    """Compare D = 128/G - 1 with the optimum."""
    rule, optimum = advice.rule, advice.optimum
    head = _("The rule D = {tile}/G - 1 says {d}").format(tile=advice.tile, d=rule.draft_length)
    if rule.loss is None:
        text = _("{head}, further than any drafter here plans; it cannot be followed.")
        return text.format(head=head)
    if rule.draft_length == 0:
        if rule.agrees:
            return _("{head}: do not speculate. The model agrees.").format(head=head)
        text = _(
            "{head}: do not speculate. Followed blindly that would cost {loss} of the speed of "
            "{scheme} at D = {best}, because attention is only {share} of a pass."
        )
        return text.format(
            head=head,
            loss=f"{rule.loss:.0%}",
            scheme=title(advice.scheme),
            best=optimum.draft_length,
            share=f"{advice.plain.share('attention'):.0%}",
        )
    if rule.agrees:
        text = _("{head}. With {scheme} that costs less than 2% against its best D = {best}: {why}")
        why = (
            _("they are the same.")
            if rule.best.draft_length == rule.draft_length
            else _("the curve is flat between them.")
        )
        return text.format(
            head=head, scheme=title(rule.scheme), best=rule.best.draft_length, why=why
        )
    text = _(
        "{head}. Followed blindly with {scheme} that would cost {loss} of its speed at D = {best}."
    )
    said = text.format(
        head=head,
        scheme=title(rule.scheme),
        loss=f"{rule.loss:.0%}",
        best=rule.best.draft_length,
    )
    return f"{said} {_why(advice)}"


def _why(advice: Advice) -> str:
    """Say why the rule and the optimum part."""
    rule = advice.rule
    if rule.best.draft_length < rule.draft_length:
        return _(
            "It is about the row tile of attention alone: drafts stop being accepted, or stop "
            "being free elsewhere, long before the tile is full."
        )
    return _(
        "Attention is only {share} of a pass here, so a second tile costs less than the tokens "
        "a longer draft brings."
    ).format(share=f"{advice.plain.share('attention'):.0%}")


def edge_sentence(advice: Advice) -> str:
    """Say which of the three edges of attention comes first."""
    edges, kernel = advice.edges, advice.question.place.used_kernel
    known = {_("matmul ridge"): edges.matmul}
    if edges.tile is not None:
        known[_("tile of {kernel}").format(kernel=kernel.title)] = float(edges.tile)
    if edges.exp is not None:
        known[_("softmax ridge")] = edges.exp
    order = sorted(known, key=lambda name: known[name])
    listed = ", ".join(_("{name} {rows}").format(name=n, rows=f"{known[n]:.0f}") for n in order)
    text = _(
        "Edges of attention in rows per KV head, G (1 + D) = {rows} at the advised D: {listed}."
    )
    rows = advice.group_size * (1 + advice.optimum.draft_length)
    return text.format(rows=rows, listed=listed)


def _runner_up(advice: Advice) -> Iterator[str]:
    others: list[Choice] = [c for c in advice.choices if c.scheme != advice.scheme]
    if others and others[0].best.draft_length:
        best, row = others[0].best, mechanism_of(others[0].scheme)
        text = _("Next: {scheme} with D = {d}, {gain}x; NVIDIA says of it: {verdict}.")
        yield text.format(
            scheme=title(others[0].scheme),
            d=best.draft_length,
            gain=f"{best.speedup:.2f}",
            verdict=row.verdict if row else "-",
        )


def _memory(advice: Advice) -> Iterator[str]:
    place = advice.question.place
    if place.memory > place.gpu.memory:
        text = _(
            "This does not fit: {need} GB of weights and cache on each GPU with {has} GB. Use "
            "more GPUs, a smaller batch or context, or smaller weights; the numbers above are "
            "for a GPU that is large enough."
        )
        yield text.format(need=f"{place.memory / 1e9:.0f}", has=f"{place.gpu.memory / 1e9:.0f}")


def provenance(advice: Advice) -> str:
    """Say what is measured, published and modelled."""
    choice = advice.choice or (advice.choices[0] if advice.choices else None)
    accepted = choice.profile.source if choice else _("none")
    how = {"measured": _("measured"), "published": _("published"), "modelled": _("modelled")}
    scheme = choice.scheme if choice else "none"
    drafter = assumption(scheme, advice.question.draft_model) if choice else "-"
    rates = (
        _("rates measured on this machine")
        if advice.question.place.gpu.how == "measured"
        else _("published rates of the GPU, lowered as on a real one ({shares})").format(
            shares=_(SHARES)
        )
    )
    text = _(
        "Acceptance: {how}, {source}. Times: modelled from {rates}. Drafter: {drafter} "
        "(modelled). Rows of kernels: read from their sources. Nothing of this was measured on "
        "this model and GPU together; Sweep does that."
    )
    return text.format(
        how=how[choice.profile.how] if choice else "-",
        source=accepted,
        rates=rates,
        drafter=drafter,
    )
