"""Text to tokens and back, exact to the byte."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer as Backend

from specviz.errors import ConfigError, ModelCorrupt, ModelNotFound, UnsupportedModel
from specviz.models.chat import ChatTemplate, Message, check_text
from specviz.words import _

_ROLES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")

Json = Mapping[str, object]


class Tokenizer:
    """What a model folder says about text: encoding, exact bytes, chat template, end tokens."""

    def __init__(
        self,
        backend: Backend,
        *,
        eos: Sequence[int] = (),
        chat: ChatTemplate | None = None,
        name: str = "this tokenizer",
    ) -> None:
        backend.no_padding()
        backend.no_truncation()
        self.eos = tuple(eos)
        self._backend = backend
        self._chat = chat
        self._name = name
        self._spelling = _spelling(backend)
        added = backend.get_added_tokens_decoder()
        self._added = {id_: token.content for id_, token in added.items()}
        self._special = {id_ for id_, token in added.items() if token.special}
        self._size = 1 + max(backend.get_vocab(with_added_tokens=True).values(), default=-1)
        self._pieces: dict[int, bytes | None] = {}

    @classmethod
    def from_folder(cls, folder: Path) -> "Tokenizer":
        """Read tokenizer.json and its companions; without it, what transformers can convert.

        Raises:
            ModelNotFound: no such folder, or no tokenizer in it.
            ModelCorrupt: a file is damaged.
            UnsupportedModel: the tokenizer is Python code of the model's author.
        """
        config = _read_json(folder / "tokenizer_config.json")
        backend = _backend(folder, config)
        special = _special_tokens(folder, config)
        source = _template_source(folder, config)
        chat = ChatTemplate(source, special, folder.name) if source else None
        eos = _end_ids(folder, special, backend)
        return cls(backend, eos=eos, chat=chat, name=folder.name)

    @property
    def vocab_size(self) -> int:
        """One more than the largest id; the model's head may have more rows."""
        return self._size

    @property
    def has_chat_template(self) -> bool:
        return self._chat is not None

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of raw text, with a begin token only if the tokenizer adds one."""
        return self._encode(text, raw=True)

    def chat(self, text: str, system: str | None = None) -> tuple[int, ...]:
        """Return the tokens of one user turn and of the opening of the answer.

        Without `system` the template's own default system prompt stands, if it has one.
        """
        messages: list[Message] = [{"role": "user", "content": text}]
        if system is not None:
            messages.insert(0, {"role": "system", "content": system})
        return self.conversation(messages)

    def conversation(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the tokens of several turns and of the opening of the next answer."""
        if self._chat is None:
            raise ConfigError(
                _(
                    "{name} has no chat template; switch the chat template off to send the prompt "
                    "as raw text"
                ).format(name=self._name)
            )
        return self._encode(self._chat.render(messages), raw=False)

    def piece(self, token: int) -> bytes:
        """Return the exact bytes of one token; nothing for an id without content."""
        return self.content(token) or b""

    def content(self, token: int) -> bytes | None:
        """Return the exact bytes of one token, None for an id that the vocabulary lacks."""
        if token not in self._pieces:
            self._pieces[token] = self._read(token)
        return self._pieces[token]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return text; bytes that are no complete character become U+FFFD."""
        return b"".join(map(self.piece, tokens)).decode("utf-8", errors="replace")

    def is_special(self, token: int) -> bool:
        """Whether the token is markup of the model rather than text."""
        return token in self._special

    def _encode(self, text: str, *, raw: bool) -> tuple[int, ...]:
        check_text(text)
        return tuple(self._backend.encode(text, add_special_tokens=raw).ids)

    def _read(self, token: int) -> bytes | None:
        if token in self._special:
            return self._added[token].encode()
        if not 0 <= token < self._size:
            return None
        text = self._backend.id_to_token(token)
        if text is None:
            return None
        if token in self._added and self._spelling != "metaspace":
            return text.encode()
        return _SPELLINGS[self._spelling](text)


def byte_alphabet() -> dict[str, int]:
    """Return the byte each character of a byte-level vocabulary stands for (GPT-2).

    Printable Latin-1 characters stand for themselves, the other bytes in order for U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


_ALPHABET = byte_alphabet()


def _byte_level(text: str) -> bytes:
    if all(character in _ALPHABET for character in text):
        return bytes(_ALPHABET[character] for character in text)
    return text.encode()


def _metaspace(text: str) -> bytes:
    if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        try:
            return bytes([int(text[3:5], 16)])
        except ValueError:
            return text.encode()
    return text.replace("▁", " ").encode()


_SPELLINGS: dict[str, Callable[[str], bytes]] = {
    "byte_level": _byte_level,
    "metaspace": _metaspace,
    "plain": str.encode,
}


def _spelling(backend: Backend) -> str:
    """How the vocabulary writes bytes, read off the steps of the tokenizer."""
    steps = [*_steps(backend.decoder), *_steps(backend.pre_tokenizer)]
    kinds = {step.get("type") for step in steps}
    if "ByteLevel" in kinds:
        return "byte_level"
    if kinds & {"Metaspace", "ByteFallback"} or any(step.get("content") == " " for step in steps):
        return "metaspace"
    return "plain"


def _steps(part: object) -> list[Json]:
    """Flatten a step of the backend, which describes itself as JSON when it is pickled."""
    if part is None:
        return []
    state = part.__getstate__()
    found: list[Json] = []
    waiting = [json.loads(state)] if isinstance(state, bytes) else []
    while waiting:
        step = waiting.pop()
        found.append(step)
        waiting += [*(step.get("pretokenizers") or ()), *(step.get("decoders") or ())]
    return found


def _backend(folder: Path, config: Json) -> Backend:
    file = folder / "tokenizer.json"
    if not file.is_file():
        return _converted(folder, config)
    try:
        return Backend.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise ModelCorrupt(
            _("{file} is no tokenizer: {error}. Download it again.").format(file=file, error=error)
        ) from error


def _converted(folder: Path, config: Json) -> Backend:
    """Let transformers convert older files such as vocab.json with merges.txt."""
    if "auto_map" in config:
        raise UnsupportedModel(
            _(
                "{folder} has a tokenizer that is Python code of its author, which is never run. "
                "Use a model whose folder has a tokenizer.json."
            ).format(folder=folder)
        )
    if not (folder / "vocab.json").is_file() and not (folder / "tokenizer.model").is_file():
        raise ModelNotFound(
            _(
                "{folder} has no tokenizer.json; copy the one that belongs to the model into it"
            ).format(folder=folder)
        )
    from transformers import AutoTokenizer

    try:
        converted = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    except (OSError, ValueError, ImportError, KeyError, TypeError) as error:
        raise UnsupportedModel(
            _(
                "the tokenizer files of {folder} cannot be converted ({error}). Copy the "
                "tokenizer.json that belongs to the model into the folder."
            ).format(folder=folder, error=error)
        ) from error
    backend = getattr(converted, "backend_tokenizer", None)
    if not isinstance(backend, Backend):
        raise UnsupportedModel(
            _(
                "{folder} has a tokenizer written in Python only. Copy the tokenizer.json that "
                "belongs to the model into the folder."
            ).format(folder=folder)
        )
    return backend


def _special_tokens(folder: Path, config: Json) -> dict[str, str]:
    """Text of bos_token, eos_token and so on, written as strings or as objects."""
    merged = {**_read_json(folder / "special_tokens_map.json"), **config}
    special = {}
    for role in _ROLES:
        value = merged.get(role)
        text = value.get("content") if isinstance(value, Mapping) else value
        if isinstance(text, str):
            special[role] = text
    return special


def _template_source(folder: Path, config: Json) -> str | None:
    file = folder / "chat_template.jinja"
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        source = config.get("chat_template")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelCorrupt(
            _("{file} is damaged ({error}). Download it again.").format(file=file, error=error)
        ) from error
    if isinstance(source, list) and all(isinstance(item, dict) for item in source):
        named = {str(item.get("name")): item.get("template") for item in source}
        source = named.get("default") or next(iter(named.values()), None)
    if not isinstance(source, str | None):
        raise ModelCorrupt(
            _(
                "{folder} has a chat_template that is no text. Download it again, or take the "
                "entry out to send raw text."
            ).format(folder=folder / "tokenizer_config.json")
        )
    return source


def _end_ids(folder: Path, special: Mapping[str, str], backend: Backend) -> tuple[int, ...]:
    found: list[object] = []
    for name in ("generation_config.json", "config.json"):
        value = _read_json(folder / name).get("eos_token_id")
        found += value if isinstance(value, list) else [value]
    if text := special.get("eos_token"):
        found.append(backend.token_to_id(text))
    return tuple(dict.fromkeys(id_ for id_ in found if isinstance(id_, int)))


def _read_json(path: Path) -> Json:
    """Return the object in a JSON file, empty if there is no file."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise ModelCorrupt(
            _("{path} is damaged ({error}). Download it again.").format(path=path, error=error)
        ) from error
    if not isinstance(content, dict):
        raise ModelCorrupt(
            _("{path} is damaged (no JSON object). Download it again.").format(path=path)
        )
    return content
