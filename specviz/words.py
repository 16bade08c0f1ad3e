"""The one catalogue of words on screen: `_("English text")` looks up the language in use.

English is the source text itself; another language is one gettext file,
`specviz/locale/<language>/LC_MESSAGES/specviz.mo`. Placeholders are filled after the lookup:
`_("{n} rounds").format(n=3)`. Never pass an f-string: it could not be looked up.
"""

import gettext
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

LOCALE = Path(__file__).parent / "locale"
_language: ContextVar[str] = ContextVar("language", default="en")


def set_language(language: str) -> None:
    """Choose the language of this thread (or task), for example "en" or "pt_BR"."""
    _language.set(language)


@lru_cache
def _catalogue(language: str) -> gettext.NullTranslations:
    return gettext.translation("specviz", str(LOCALE), languages=[language], fallback=True)


def _(text: str) -> str:
    """Return `text` in the language in use; English where there is no translation."""
    return _catalogue(_language.get()).gettext(text)


def ngettext(one: str, many: str, n: int) -> str:
    """Return the form of the sentence that fits the number `n`."""
    return _catalogue(_language.get()).ngettext(one, many, n)
