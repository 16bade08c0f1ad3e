"""The words of this program, and what every peer calls acceptance on one and the same run."""

from collections.abc import Sequence

from specviz.events import Round
from specviz.metrics import definitions
from specviz.words import _

Sheet = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]  # headings and rows
Value = float | tuple[float | None, ...] | None


def peers(rounds: Sequence[Round]) -> Sheet:
    """Return every convention with its formula and its value on `rounds`, under headings."""
    columns = (_("Who"), _("Their word"), _("How it is computed"), _("On this run"))
    rows = [(d.peer, d.name, d.formula, written(d.value)) for d in definitions(rounds)]
    return columns, rows


def spread(rounds: Sequence[Round]) -> str:
    """Say in one sentence how far apart the numbers of one run are."""
    values = [d.value for d in definitions(rounds) if isinstance(d.value, float | int)]
    if not values:
        return _("This run drafted nothing, so there is nothing to define.")
    text = _("One run, {n} honest numbers from {low} to {high}: compare a number with its formula.")
    return text.format(n=len(values), low=written(min(values)), high=written(max(values)))


def written(value: Value) -> str:
    """Return a number, or one for each position, as text."""
    if value is None:
        return _("n/a")
    if isinstance(value, tuple):
        return ", ".join(map(written, value)) or _("n/a")
    return f"{value:.3f}"


def words() -> tuple[tuple[str, str, str], ...]:
    """Return each word, its meaning, and what others call it."""
    return (
        (_("target"), _("The model whose output must be preserved."), "verifier, base model"),
        (
            _("drafter"),
            _("Anything that proposes tokens, a model or not."),
            "proposer, speculator, assistant",
        ),
        (
            _("draft, node, path"),
            _("The proposed tree, its tokens, and the tokens kept from root to leaf."),
            "candidates",
        ),
        (_("budget, D"), _("Most tokens drafted per round."), "gamma, K, num_speculative_tokens"),
        (
            _("round"),
            _("Draft, score, verify, commit: once around."),
            "step, num_drafts",
        ),
        (_("score"), _("The target's one pass over the draft, 1 + D rows."), "verification pass"),
        (_("verify"), _("To decide which drafts are kept."), "evaluate_posterior"),
        (_("accepted"), _("A draft that is kept."), "matched, correct drafts"),
        (
            _("recovered"),
            _("The target's own token in place of a refused draft, drawn from max(p - q, 0)."),
            "corrected, resampled",
        ),
        (_("bonus"), _("The target's own token when nothing was refused."), "extra token"),
        (_("committed"), _("Accepted, recovered or bonus: the output."), "emitted"),
        (
            _("E[L], acceptance length"),
            _("Committed tokens per round, the target's own included: 1 to 1 + D."),
            "tau, AL, accept_len",
        ),
        (_("acceptance rate"), _("Accepted / drafted."), "alpha, draft acceptance rate"),
        (
            _("p and q"),
            _("Probability of a token by the target and by the drafter."),
            "swapped",
        ),
        (_("residual"), _("max(p - q, 0), made to sum to 1."), "adjusted distribution"),
        (
            _("lossless"),
            _("The text has exactly the distribution of plain decoding."),
            "",
        ),
        (_("feature"), _("A hidden state of the target that a drafter reads."), "aux hidden state"),
        (_("G"), _("Query heads per KV head."), _("group size, not the number of groups")),
        (_("speedup"), _("Time per token of plain decoding / of this; same weights."), ""),
    )
