"""Prompts become texts to train on: the target answers them itself."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specviz.config import SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.errors import ConfigError
from specviz.models.load import Loaded
from specviz.models.store import Progress, silent
from specviz.session import DecodeSession
from specviz.train.corpus import Example, to_row
from specviz.words import _

Turn = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """How prompts are answered: prompt n at temperature n modulo their number."""

    temperatures: tuple[float, ...] = (0.0, 0.0, 0.0, 0.8, 0.8)
    max_tokens: int = 224
    seed: int = 0


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
    done = _resume(responses)
    with responses.open("a", encoding="utf-8") as out:
        for index, conversation in enumerate(conversations[done:], done):
            progress("answering prompts", index / len(conversations))
            lines = [
                json.dumps({**to_row(example), "temperature": temperature, "prompt": index})
                for example, temperature in _answer(loaded, conversation, index, answering)
            ]
            out.write("".join(line + "\n" for line in lines))
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
    loaded: Loaded, conversation: Conversation, index: int, answering: Answering
) -> Iterator[tuple[Example, float]]:
    temperature = answering.temperatures[index % len(answering.temperatures)]
    params = SamplingParams(
        temperature=temperature, max_tokens=answering.max_tokens, seed=answering.seed + index
    )
    history: list[Turn] = []
    for turn in conversation.turns:
        history.append(turn)
        if turn["role"] != "user":
            continue
        prompt = _encode(loaded, history)
        room = loaded.target.config.context - len(prompt)
        if room < 1:
            return
        output = _decode(loaded, prompt, replace(params, max_tokens=min(room, params.max_tokens)))
        yield (
            Example(
                tokens=(*prompt, *output),
                prompt_length=len(prompt),
                greedy=params.greedy,
                kind=conversation.kind,
            ),
            temperature,
        )
        words = [token for token in output if not loaded.tokenizer.is_special(token)]
        history.append({"role": "assistant", "content": loaded.tokenizer.decode(words)})


def _encode(loaded: Loaded, history: Sequence[Turn]) -> tuple[int, ...]:
    if loaded.tokenizer.has_chat_template:
        return loaded.tokenizer.conversation(history)
    return loaded.tokenizer.encode("\n".join(turn["content"] for turn in history))


def _decode(loaded: Loaded, prompt: Sequence[int], params: SamplingParams) -> tuple[int, ...]:
    """Decode with n-gram drafts, which change the speed and not the text."""
    config = SessionConfig(scheme="ngram", detail="off")
    drafter = make_drafter(config, loaded.target, loaded.tokenizer)
    session = DecodeSession(loaded.target, drafter, prompt, params, config)
    for _round in session:
        pass
    return session.output


def _resume(responses: Path) -> int:
    """Cut off a line that was not written to its end; return how many prompts are done."""
    if not responses.is_file():
        return 0
    text = responses.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        responses.write_bytes(whole)
    lines = whole.splitlines()
    return int(json.loads(lines[-1])["prompt"]) + 1 if lines else 0
