"""The decoding loop, one round at a time: propose, score, verify, commit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from torch import Tensor

from specviz.config import SamplingParams, SessionConfig
from specviz.detail import Scored, attention_of
from specviz.drafters.base import Context, Drafter, Proposal
from specviz.errors import ConfigError, DraftError, PromptError
from specviz.events import EMPTY, Draft, Finish, LastKind, Round, Timing
from specviz.models.target import Target
from specviz.stops import Cut, StopRules
from specviz.stopwatch import Stopwatch
from specviz.verify import (
    Draws,
    Verdict,
    choose_verifier,
    verify_block,
    verify_greedy,
    verify_sampled,
)
from specviz.verify.on_device import Place, refusal, verify_on_device
from specviz.verify.processors import check_mass, check_rows, of_tokens, penalise, row_outputs
from specviz.words import _


class DecodeSession:
    """Iterate to decode: each `next()` runs one round and says what happened."""

    def __init__(
        self,
        target: Target,
        drafter: Drafter,
        prompt: Sequence[int],
        params: SamplingParams | None = None,
        config: SessionConfig | None = None,
        *,
        piece: Callable[[int], bytes] | None = None,
    ) -> None:
        """Read the prompt into the target's cache, all but its last token.

        Args:
            target: its cache is emptied first; the session owns it from here on.
            drafter: proposes; its name is what rounds call the scheme.
            prompt: token ids, at least one.
            params: how to sample; greedy by default.
            config: draft length, verifier and detail.
            piece: exact bytes of a token; needed for stop strings.

        Raises:
            PromptError: the prompt is empty, out of vocabulary or longer than the context.
            ConfigError: a combination that cannot be lossless or cannot be checked.
        """
        self.target, self.drafter, self.prompt = target, drafter, tuple(prompt)
        self.params, self.config = params or SamplingParams(), config or SessionConfig()
        self.rounds: list[Round] = []
        self._tokens, self._known = self.prompt, 0  # memo of `tokens`: how many rounds are in it
        self.finish: Finish | None = None
        self.scored: Scored | None = None  # of the latest round, for replays
        self.verifier = choose_verifier(self.config.verifier, self.params)
        self.piece = piece
        self.stops = self._stop_rules()
        watch = Stopwatch(target.device)
        target.truncate(0)
        target.prefill(self.prompt[:-1])
        self.prefill_seconds = watch.seconds()["total"]

    @property
    def output(self) -> tuple[int, ...]:
        """Committed tokens without the prompt."""
        return self.tokens[len(self.prompt) :]

    @property
    def tokens(self) -> tuple[int, ...]:
        """Prompt and output; rounds never seen before are added to what is known."""
        if self._known > len(self.rounds):  # rounds were taken away
            self._tokens, self._known = self.prompt, 0
        if self._known < len(self.rounds):
            new = chain.from_iterable(r.committed for r in self.rounds[self._known :])
            self._tokens, self._known = (*self._tokens, *new), len(self.rounds)
        return self._tokens

    def __iter__(self) -> Iterator[Round]:
        while self.finish is None:
            yield self.step()

    def step(self, forced: int | None = None) -> Round:
        """Run one round; `forced` commits that token, undrafted, instead of the target's own."""
        if self.finish is not None:
            raise ConfigError(
                _("this run has ended ({reason}); rewind or fork it to go on").format(
                    reason=self.finish.reason
                )
            )
        vocab = self.target.config.vocab
        if forced is not None and not 0 <= forced < vocab:
            raise ConfigError(
                _("forced token is {forced}; the target has ids 0 to {most}").format(
                    forced=forced, most=vocab - 1
                )
            )
        watch, tokens = Stopwatch(self.target.device), self.tokens
        start, output = len(tokens), tokens[len(self.prompt) :]
        proposal = self._propose(tokens, forced)
        watch.lap("draft")
        raw = self.target.score(tokens[-1], proposal.draft)
        watch.lap("score")
        verdict = self._verify(proposal, raw, output, start)
        kind = _last_kind(proposal.draft, verdict, forced)
        last = verdict.last_token if forced is None else forced
        watch.lap("verify")
        new = (*(proposal.draft.tokens[i] for i in verdict.path), last)
        cut = self.stops.cut(output, new)
        kept = verdict.path[: cut.keep]
        # The newest committed token is the next root: it is scored, and cached, next round.
        self.target.commit(kept if cut.keep == len(new) else kept[:-1])
        watch.lap("commit")
        round_ = self._record(proposal, verdict, cut, last, kind, start)
        watch.lap("record")
        self.rounds.append(replace(round_, timing=Timing(**watch.seconds())))
        self.finish = cut.finish
        return self.rounds[-1]

    def rewind(self, to: int) -> None:
        """Forget rounds from `to` on; going forward again repeats them exactly."""
        if not 0 <= to <= len(self.rounds):
            raise ConfigError(
                _("cannot rewind to round {to}; this run has {count}").format(
                    to=to, count=len(self.rounds)
                )
            )
        del self.rounds[to:]
        self.finish = self._end_of_rounds()
        self.target.truncate(len(self.tokens) - 1)

    def fork(
        self,
        at: int,
        *,
        drafter: Drafter | None = None,
        params: SamplingParams | None = None,
        config: SessionConfig | None = None,
    ) -> "DecodeSession":
        """Branch before round `at`: those rounds stay, what follows may use other settings."""
        if not 0 <= at <= len(self.rounds):
            raise ConfigError(
                _("cannot fork at round {at}; this run has {count}").format(
                    at=at, count=len(self.rounds)
                )
            )
        branch = object.__new__(DecodeSession)
        branch.__dict__.update(self.__dict__)
        branch.drafter = drafter or self.drafter
        branch.params, branch.config = params or self.params, config or self.config
        branch.verifier = choose_verifier(branch.config.verifier, branch.params)
        branch.rounds, branch.scored = self.rounds[:at], None
        branch.stops = branch._stop_rules()
        branch.finish = branch._end_of_rounds()
        branch.target = self.target.fork(len(branch.tokens) - 1)
        return branch

    def _end_of_rounds(self) -> Finish | None:
        """Why the rounds that are kept end the output, under the settings in force."""
        return self.stops.cut((), self.output).finish

    def _stop_rules(self) -> StopRules:
        shape, prompt, params = self.target.config, self.prompt, self.params
        if not prompt:
            raise PromptError(_("the prompt is empty; give at least one token of text"))
        outside = [t for t in prompt if not 0 <= t < shape.vocab]
        if outside:
            raise PromptError(
                _("the prompt holds token {outside}; {name} has ids 0 to {most}").format(
                    outside=outside[0], name=shape.name, most=shape.vocab - 1
                )
            )
        if len(prompt) >= shape.context:
            raise PromptError(
                _(
                    "the prompt has {count} tokens; {name} has room for {context}, output "
                    "included. Shorten it or choose a model with a longer context."
                ).format(count=len(prompt), name=shape.name, context=shape.context)
            )
        if params.stop and self.piece is None:
            raise ConfigError(_("stop strings need a tokenizer (`piece`); use stop_ids instead"))
        ends = () if params.ignore_eos else shape.eos
        return StopRules(
            frozenset((*ends, *params.stop_ids)),
            tuple(text.encode() for text in params.stop),
            params.max_tokens,
            shape.context - len(prompt),
            self.piece or (lambda token: b""),
        )

    def _propose(self, tokens: tuple[int, ...], forced: int | None) -> Proposal:
        budget = min(self.config.draft_length, self._room(len(tokens)))
        if forced is not None or budget <= 0:
            return Proposal(EMPTY)
        draws, features = self._draws(len(tokens)), self.target.features
        context = Context(tokens, len(self.prompt), self.params, draws, features)
        proposal = self.drafter.propose(context, budget)
        self._check_proposal(proposal, budget, len(tokens))
        return proposal

    def _room(self, start: int) -> int:
        """Tokens that fit into the output before the round's last one."""
        return self.stops.limit - (start - len(self.prompt)) - 1

    def _check_proposal(self, proposal: Proposal, budget: int, start: int) -> None:
        draft, name, vocab = proposal.draft, self.drafter.name, self.target.config.vocab
        if len(draft) > budget:
            raise DraftError(
                _("{name} proposed {count} tokens; {budget} were asked for").format(
                    name=name, count=len(draft), budget=budget
                )
            )
        outside = [t for t in draft.tokens if not 0 <= t < vocab]
        if outside:
            raise DraftError(
                _(
                    "{name} proposed token {outside}; the target has ids 0 to {most}. Drafter and "
                    "target do not share a vocabulary."
                ).format(name=name, outside=outside[0], most=vocab - 1)
            )
        if proposal.probs is not None and len(draft) and not self._on_device(proposal.probs):
            check_rows(proposal.probs, f"q of {name}", len(self.rounds), start)
            check_mass(name, draft.tokens, of_tokens(proposal.probs, draft).tolist())

    def _draws(self, start: int) -> Draws:
        return Draws(self.params.seed, epoch=start if self.verifier == "block" else 0)

    def _on_device(self, rows: Tensor) -> bool:
        """Whether one launch decides, which also brings q of what was drawn."""
        return rows.is_cuda and self.verifier != "block" and not refusal(rows.device)

    def _verify(
        self, proposal: Proposal, raw: Tensor, output: tuple[int, ...], start: int
    ) -> Verdict:
        draft, q, logits, params = proposal.draft, proposal.probs, raw, self.params
        target, index, draws = self.target.config.name, len(self.rounds), self._draws(start)
        if params.penalised:
            logits = penalise(raw, self.prompt, row_outputs(output, draft), params)
        self.scored = Scored(draft, raw, logits, params, q)
        if self._on_device(raw):
            place = Place(draws, start, index, target, self.drafter.name)
            return verify_on_device(draft, q, logits, params, place)
        check_rows(raw, f"logits of {target}", index, start)
        if self.verifier == "greedy":
            return verify_greedy(draft, logits)
        check_rows(self.scored.p, "p", index, start)
        verify = verify_block if self.verifier == "block" else verify_sampled
        return verify(draft, q, self.scored.p, draws, start)

    def _record(
        self,
        proposal: Proposal,
        verdict: Verdict,
        cut: Cut,
        last: int,
        kind: LastKind,
        start: int,
    ) -> Round:
        scored, detail = self.scored, self.config.detail
        assert scored is not None
        whole = cut.keep == len(verdict.path) + 1
        before = self.rounds[-1] if self.rounds else None
        row = verdict.path[-1] + 1 if verdict.path else 0
        return Round(
            index=len(self.rounds),
            start=start,
            scheme=self.drafter.name,
            budget=self.config.draft_length if self._room(start) > 0 else 0,
            draft=proposal.draft,
            path=verdict.path[: cut.keep],
            last_token=last if whole else None,
            last_kind=kind,
            past_end=verdict.path[cut.keep :],
            checks=verdict.checks,
            q_kind="point" if proposal.probs is None else "full",
            evidence=proposal.evidence,
            attention=attention_of(self.target, proposal.draft),
            began=before.began + before.timing.total if before else 0.0,
            last_p=float(scored.p[row, last]) if kind == "forced" else verdict.last_p,
            last_u=None if kind == "forced" else verdict.last_u,
            last_logprob=scored.last_logprob(row, last) if whole and detail != "off" else None,
            nodes=scored.node_scores(ranks=detail == "full") if detail != "off" else (),
            rows=tuple(scored.top_rows()) if detail == "full" else (),
        )


def _last_kind(draft: Draft, verdict: Verdict, forced: int | None) -> LastKind:
    if forced is not None:
        return "forced"
    if not len(draft):
        return "plain"
    return "recovered" if draft.children(verdict.path[-1] if verdict.path else -1) else "bonus"
