"""The one catalogue of words on screen: `_("English text")` looks up the language in use.

English is the source text itself; another language is one gettext file,
`specviz/locale/<language>/LC_MESSAGES/specviz.mo`. Placeholders are filled after the lookup:
`_("{n} rounds").format(n=3)`. Never pass an f-string: it could not be looked up.
"""

import gettext
import re
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

LOCALE = Path(__file__).parent / "locale"
_NAME = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")
_language: ContextVar[str] = ContextVar("language", default="en")


def set_language(language: str) -> None:
    """Choose the language of this thread (or task): "en", "pt_BR", or as browsers say, "pt-BR".

    Anything that is no such name means English: the name becomes part of a path.
    """
    _language.set(language.replace("-", "_") if _NAME.fullmatch(language) else "en")


def language() -> str:
    """Return the language in use: "en", "pt_BR"."""
    return _language.get()


@lru_cache
def _catalogue(language: str) -> gettext.NullTranslations:
    return gettext.translation("specviz", str(LOCALE), languages=[language], fallback=True)


def _(text: str) -> str:
    """Return `text` in the language in use; English where there is no translation."""
    return _catalogue(_language.get()).gettext(text)


def ngettext(one: str, many: str, n: int) -> str:
    """Return the form of the sentence that fits the number `n`."""
    return _catalogue(_language.get()).ngettext(one, many, n)
