"""Chat templates: Jinja text from a model's files, rendered in a sandbox."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from specviz.errors import ConfigError, ModelCorrupt, PromptError
from specviz.words import _

Message = Mapping[str, str]


def check_text(text: str) -> None:
    """Raise PromptError for half a surrogate pair, which no encoding can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(
            _(
                "the prompt has half a surrogate pair at character {start}, which is no text; "
                "delete it"
            ).format(start=error.start)
        ) from error


class ChatTemplate:
    """One template of one model."""

    def __init__(self, source: str, special: Mapping[str, str], name: str) -> None:
        self._special = dict(special)  # bos_token, eos_token, ...: templates may name them
        self._name = name
        try:
            self._template = _environment().from_string(source)
        except (jinja2.TemplateError, RecursionError) as error:
            raise ModelCorrupt(
                _(
                    "the chat template of {name} cannot be read: {error}. Switch the chat template "
                    "off to send raw text, or repair tokenizer_config.json."
                ).format(name=name, error=error)
            ) from error

    def render(self, messages: Sequence[Message]) -> str:
        """Return the text of the conversation up to where the assistant's answer begins.

        Raises:
            ConfigError: the template refuses these messages.
            PromptError: a message is no text.
        """
        for message in messages:
            check_text(message["content"])  # here, where positions are still the writer's own
        try:
            text = self._template.render(
                messages=list(messages),
                add_generation_prompt=True,
                tools=None,
                documents=None,
                **self._special,
            )
            text.encode()  # a template can write half a surrogate pair too
        # Whatever an expression in a template can do wrong in Python:
        except (jinja2.TemplateError, ArithmeticError, AttributeError, LookupError) as error:
            raise self._refused(error) from error
        except (TypeError, ValueError, RecursionError, MemoryError) as error:
            raise self._refused(error) from error
        return text

    def _refused(self, error: Exception) -> ConfigError:
        return ConfigError(
            _(
                "the chat template of {name} refused this prompt: {error}. Change the prompt or "
                "its system text, or switch the chat template off to send raw text."
            ).format(name=self._name, error=error)
        )


class _Generation(Extension):
    """`{% generation %}` marks the assistant's words for training; here it only encloses them."""

    tags = {"generation"}  # noqa: RUF012  (how Jinja declares it)

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> jinja2.Environment:
    """The names that templates are written for, as transformers offers them."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)
