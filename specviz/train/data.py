"""Prompts become texts to train on: the target answers them itself."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specviz.config import SamplingParams, require
from specviz.errors import ConfigError
from specviz.models.load import Loaded
from specviz.models.store import Progress, silent
from specviz.train.answer import Answerer, OneByOne, Together
from specviz.train.corpus import Example, to_row
from specviz.words import _

Turn = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """How prompts are answered: prompt n at temperature n modulo their number."""

    temperatures: tuple[float, ...] = (0.0, 0.0, 0.0, 0.8, 0.8)
    max_tokens: int = 224
    seed: int = 0
    together: int = 1  # prompts at once, through transformers' generate; 1: our own loop

    def __post_init__(self) -> None:
        require(self.together >= 1, "together", self.together, _("1 or more"))

    def params(self, index: int) -> SamplingParams:
        """Return the settings of prompt `index`."""
        temperature = self.temperatures[index % len(self.temperatures)]
        return SamplingParams(
            temperature=temperature, max_tokens=self.max_tokens, seed=self.seed + index
        )


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns of a person, and what kind of prompt it is. Answers in the file are not kept."""

    turns: tuple[Turn, ...]
    kind: str


def answer_prompts(
    loaded: Loaded,
    prompts: Path,
    responses: Path,
    answering: Answering | None = None,
    progress: Progress = silent,
) -> Path:
    """Answer every line of `prompts` and append to `responses`; a killed run goes on.

    A line is a JSON string, an object with `prompt`, or one with `messages` (role and content);
    `source`, if given, is the class of the prompt. Answers in `messages` are replaced by the
    target's own, turn by turn, and each turn becomes a line of `responses` with its ids.

    Raises:
        ConfigError: a line is neither.
    """
    answering = answering or Answering()
    conversations = list(read_prompts(prompts))
    size = answering.together
    answerer: Answerer = OneByOne(loaded) if size == 1 else Together(loaded)
    with responses.open("a", encoding="utf-8") as out:
        for first in range(_resume(responses, size), len(conversations), size):
            progress("answering prompts", first / len(conversations))
            batch = dict(enumerate(conversations[first : first + size], first))
            rows = [
                {
                    **to_row(example),
                    "temperature": answering.params(index).temperature,
                    "prompt": index,
                    "more": True,  # lines of this batch follow
                }
                for index, examples in _answer(loaded, answerer, batch, answering).items()
                for example in examples
            ]
            if rows:  # a prompt that fills the context has no answer
                rows[-1]["more"] = False
            out.writelines(json.dumps(row) + "\n" for row in rows)
            out.flush()
    progress("answering prompts", 1.0)
    return responses


def read_prompts(path: Path) -> Iterator[Conversation]:
    """Read a `.jsonl` of prompts."""
    if not path.is_file():
        raise ConfigError(_("there is no file {path}; give a .jsonl of prompts").format(path=path))
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                value = json.loads(line)
            except ValueError as error:
                raise ConfigError(
                    _("{path}, line {number} is no JSON: {error}").format(
                        path=path, number=number, error=error
                    )
                ) from error
            turns = _turns(value)
            if not any(turn["role"] == "user" for turn in turns):
                raise ConfigError(
                    _(
                        '{path}, line {number} has no prompt; needed: a string, {{"prompt": ...}} '
                        'or {{"messages": [{{"role": "user", "content": ...}}]}}'
                    ).format(path=path, number=number)
                )
            kind = value.get("source") if isinstance(value, dict) else None
            yield Conversation(turns, str(kind or "prompt"))


def _turns(value: object) -> tuple[Turn, ...]:
    """Turns of the person and of the system, answers left out."""
    if isinstance(value, str):
        return ({"role": "user", "content": value},)
    if not isinstance(value, dict):
        return ()
    if isinstance(value.get("prompt"), str):
        return ({"role": "user", "content": value["prompt"]},)
    messages = value.get("messages")
    return tuple(
        {"role": message["role"], "content": message["content"]}
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict)
        and message.get("role") in ("user", "system")
        and isinstance(message.get("content"), str)
    )


def _answer(
    loaded: Loaded, answerer: Answerer, batch: dict[int, Conversation], answering: Answering
) -> dict[int, list[Example]]:
    """Answer conversations side by side, turn by turn; return the examples of each."""
    found: dict[int, list[Example]] = {index: [] for index in batch}
    histories: dict[int, list[Turn]] = {index: [] for index in batch}
    for number in range(max(len(conversation.turns) for conversation in batch.values())):
        asked: dict[int, tuple[int, ...]] = {}
        for index, conversation in batch.items():
            if number >= len(conversation.turns):
                continue
            histories[index].append(conversation.turns[number])
            if conversation.turns[number]["role"] == "user":
                prompt = _encode(loaded, histories[index])
                if len(prompt) < loaded.target.config.context:
                    asked[index] = prompt
        params = {index: _fitting(loaded, answering.params(index), asked[index]) for index in asked}
        outputs = answerer.answer(list(asked.values()), list(params.values()))
        for (index, prompt), output in zip(asked.items(), outputs, strict=True):
            found[index].append(
                Example(
                    tokens=(*prompt, *output),
                    prompt_length=len(prompt),
                    greedy=params[index].greedy,
                    kind=batch[index].kind,
                )
            )
            words = [token for token in output if not loaded.tokenizer.is_special(token)]
            said = loaded.tokenizer.decode(words)
            histories[index].append({"role": "assistant", "content": said})
    return found


def _fitting(loaded: Loaded, params: SamplingParams, prompt: Sequence[int]) -> SamplingParams:
    room = loaded.target.config.context - len(prompt)
    return replace(params, max_tokens=min(room, params.max_tokens))


def _encode(loaded: Loaded, history: Sequence[Turn]) -> tuple[int, ...]:
    if loaded.tokenizer.has_chat_template:
        return loaded.tokenizer.conversation(history)
    return loaded.tokenizer.encode("\n".join(turn["content"] for turn in history))


def _resume(responses: Path, together: int) -> int:
    """Cut off a batch that was not written to its end; return how many prompts are done."""
    if not responses.is_file():
        return 0
    text = responses.read_bytes()
    lines = text[: text.rfind(b"\n") + 1].splitlines(keepends=True)
    rows = [json.loads(line) for line in lines]
    kept = max((at + 1 for at, row in enumerate(rows) if not row["more"]), default=0)
    whole = b"".join(lines[:kept])
    if len(whole) < len(text):
        responses.write_bytes(whole)
    batches = int(rows[kept - 1]["prompt"]) // together + 1 if kept else 0
    return batches * together
