"""Small traces written by hand, and token texts that must stay inert."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from specviz.config import SamplingParams, SessionConfig
from specviz.events import (
    Candidate,
    Check,
    Draft,
    Evidence,
    Finish,
    LastKind,
    NodeScore,
    Round,
    Row,
    Timing,
)
from specviz.traces.schema import Trace
from tests.traces import samples

# I2, I3: as markup, Markdown, LaTeX, a template or a Streamlit directive these would do something.
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "</span><b>bold</b><br>",
    "&lt;b&gt; &amp; &#36;",
    "{{ 7 * 7 }} ${x} %{y} %s",
    "$x^2$ and \\(y\\)",
    ":red[x] :material/home:",
    "a | b\n|---|---|\n",
    "* item\n1. item\n# title\n```code```",
    "[link](javascript:alert(1)) `code`",
    "  two  spaces  ",
    "\n",
    "\t\r\n\x00\x1b[31m",
    "\"quoted\" 'both' \\",
    "\u202eright to left\u202c",
    "\u200bzero width",
)

CARD = replace(samples.CARD, heads=9, kv_heads=3, head_dim=64, context=2048)


class Speller:
    """Hands out a token id for each piece of text or bytes."""

    def __init__(self) -> None:
        self.ids: dict[bytes, int] = {}

    def __call__(self, piece: str | bytes) -> int:
        data = piece.encode() if isinstance(piece, str) else piece
        return self.ids.setdefault(data, 100 + len(self.ids))

    @property
    def pieces(self) -> Mapping[int, bytes]:
        return {token: data for data, token in self.ids.items()}


class Story:
    """Builds a trace round by round: drafts, how many were accepted, the target's own token."""

    def __init__(self, *prompt: str | bytes, scheme: str = "ngram") -> None:
        self.spell = Speller()
        self.prompt = tuple(self.spell(p) for p in prompt)
        self.rounds: list[Round] = []
        self.scheme = scheme

    @property
    def start(self) -> int:
        return len(self.prompt) + sum(r.acceptance_length for r in self.rounds)

    def add(
        self,
        drafts: Sequence[str | bytes] = (),
        accepted: int = 0,
        last: str | bytes | None = None,
        *,
        past_end: int = 0,
        kind: LastKind | None = None,
        evidence: Evidence | None = None,
        u: float | None = None,
        q: float = 1.0,
    ) -> "Story":
        tokens = [self.spell(d) for d in drafts]
        checked = min(len(tokens), accepted + 1) if last is not None else accepted
        probability = 0.9 if u is not None else 1.0
        checks = [Check(n, probability, q, probability, u, True) for n in range(accepted)]
        if checked > accepted:
            checks.append(Check(accepted, 0.0, q, 0.0, u, False))
        checks += [
            Check(n, probability, q, probability, u, True)
            for n in range(accepted, accepted + past_end)
        ]
        own = None if last is None else self.spell(last)
        usual: LastKind = (
            "plain" if not drafts else "bonus" if accepted == len(drafts) else "recovered"
        )
        self.rounds.append(
            Round(
                index=len(self.rounds),
                start=self.start,
                scheme=self.scheme,
                budget=max(4, len(tokens)),
                draft=Draft.chain(tokens),
                path=tuple(range(accepted)),
                last_token=own,
                last_kind=kind or usual,
                past_end=tuple(range(accepted, accepted + past_end)),
                checks=tuple(checks),
                evidence=evidence or Evidence(),
                timing=Timing(draft=0.001, score=0.02, verify=0.001, commit=0.001, total=0.025),
                began=0.025 * len(self.rounds),
                last_p=None if own is None else 1.0,
                last_logprob=None if own is None else -0.31,
                nodes=tuple(NodeScore(0.5, q, -0.7, rank) for rank in range(len(tokens))),
                rows=self._rows(tokens, own),
            )
        )
        return self

    @staticmethod
    def _rows(tokens: Sequence[int], own: int | None) -> tuple[Row, ...]:
        def top(token: int | None) -> tuple[Candidate, ...]:
            found = [] if token is None else [Candidate(token, 0.2, 1.0, -1.7)]
            return (*found, *([] if own is None else [Candidate(own, 0.8, 0.0, -0.31)]))

        best = own if own is not None else tokens[0]
        return tuple(
            Row(best, 1.25, None, top(tokens[row] if row < len(tokens) else None))
            for row in range(len(tokens) + 1)
        )

    def trace(self, finish: Finish | None = None, **settings: object) -> Trace:
        return samples.trace_of(
            tuple(self.rounds),
            self.prompt,
            run_id="run",
            created="2026-11-30T00:00:00+00:00",
            title="story",
            target=CARD,
            params=SamplingParams(),
            config=SessionConfig(scheme=self.scheme),
            chat=False,
            prompt_text=None,
            pieces=self.spell.pieces,
            **{"finish": finish, "lossless": None} | settings,
        )


def long_story(rounds: int = 1000, drafts: int = 5) -> Story:
    """A full-detail run of realistic size; words repeat, as in real text."""
    story = Story("Once", " upon", " a", " time")
    for at in range(rounds):
        words = [f" word{(at * 7 + j) % 400}" for j in range(drafts)]
        accepted = at % (drafts + 1)
        story.add(words, accepted, f" own{at % 300}", u=0.3, q=0.7)
    return story
