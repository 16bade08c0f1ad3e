"""Our side of a job, counted as vLLM counts."""

from dataclasses import dataclass

from specviz.bench.conformance.job import Counts, Job
from specviz.bench.drafts import listened_to, load_draft
from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.drafters.none import PlainDrafter
from specviz.events import Round
from specviz.models.load import Loaded
from specviz.models.store import Progress, silent
from specviz.session import DecodeSession


@dataclass(frozen=True, slots=True)
class Ours:
    """A loaded target and the settings of one job."""

    loaded: Loaded
    job: Job

    def config(self) -> SessionConfig:
        """Return the session settings that mean what the job says."""
        low, high = self.job.ngram
        drafter = None if self.job.drafter is None else str(self.job.drafter)
        is_model = self.job.scheme == "draft_model"
        options = DrafterOptions(
            ngram_min=low,
            ngram_max=high,
            draft_model=drafter if is_model else None,
            head=None if is_model else drafter,
        )
        return SessionConfig(
            scheme=self.job.scheme,
            draft_length=self.job.draft_length,
            detail="off",
            options=options,
        )

    def decode(self, progress: Progress = silent) -> tuple[Counts, ...]:
        """Decode all prompts.

        Raises:
            ModelError: the drafter cannot be used.
        """
        config, counts = self.config(), list[Counts]()
        draft = load_draft(self.loaded, config)
        target = listened_to(self.loaded.target, draft)
        for number, prompt in enumerate(self.job.prompts, 1):
            progress(f"{self.job.scheme}: prompt {number}", number / len(self.job.prompts))
            first = self._first(prompt)
            if first in target.config.eos:
                counts.append(Counts(output=(first,)))
                continue
            drafter = make_drafter(config, self.loaded.target, self.loaded.tokenizer, draft)
            # more than is asked for, so that the last draft is as long as vLLM's
            room = SamplingParams(max_tokens=self.job.tokens + self.job.draft_length)
            session = DecodeSession(target, drafter, (*prompt, first), room, config)
            while session.finish is None and 1 + len(session.output) < self.job.tokens:
                session.step()
            counts.append(count((first, *session.output)[: self.job.tokens], session.rounds))
        return tuple(counts)

    def _first(self, prompt: tuple[int, ...]) -> int:
        """Return the token that comes out of reading the prompt: vLLM drafts after it."""
        params = SamplingParams(max_tokens=1, ignore_eos=True)
        session = DecodeSession(self.loaded.target.fork(0), PlainDrafter(), prompt, params)
        session.step()
        return session.output[0]


def count(output: tuple[int, ...], rounds: list[Round]) -> Counts:
    """Count a run as vLLM does: what was accepted beyond an end token counts."""
    drafted = [r for r in rounds if len(r.draft)]
    accepted = [len(r.path) + len(r.past_end) for r in drafted]
    deepest = max((len(r.draft) for r in drafted), default=0)
    return Counts(
        output=output,
        rounds=len(drafted),
        drafted=sum(len(r.draft) for r in drafted),
        accepted=sum(accepted),
        by_position=tuple(sum(a > i for a in accepted) for i in range(deepest)),
    )
