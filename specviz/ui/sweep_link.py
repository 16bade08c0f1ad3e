"""Settings of a page in its address: read once in a new tab, written back as they change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import streamlit as st

from specviz.words import _

Value = str | int | float | tuple[str, ...] | tuple[int, int]
SHORT = 600  # characters of a typed text that still go into a link


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: text, a number from `low` to `high`, a range of them, or some of `choices`."""

    default: Value
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        if self.choices:
            return ", ".join(self.choices)
        if isinstance(self.default, str):
            return _("text of up to {n} characters").format(n=SHORT)
        return _("{low} to {high}").format(low=f"{self.low:g}", high=f"{self.high:g}")

    def parse(self, raw: str) -> Value | None:
        """Read a value out of a link; None if it is not one that is allowed here."""
        if self.choices:
            found = tuple(part for part in raw.split(",") if part)
            return found if set(found) <= set(self.choices) else None
        if isinstance(self.default, str):
            return raw if len(raw) <= SHORT else None
        try:
            numbers = [float(part) for part in raw.split("-")]
        except ValueError:
            return None
        if any(not self.low <= number <= self.high for number in numbers):
            return None
        if isinstance(self.default, tuple):
            return (int(numbers[0]), int(numbers[-1])) if len(numbers) < 3 else None
        if len(numbers) > 1:
            return None
        return numbers[0] if isinstance(self.default, float) else int(numbers[0])

    def write(self, value: object) -> str:
        """Return a value as `parse` reads it."""
        if isinstance(value, tuple | list):
            return ("," if self.choices else "-").join(map(str, value))
        return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Link:
    """The settings of one page; widgets hold them under `key`."""

    page: str
    settings: Mapping[str, Setting]

    def key(self, name: str) -> str:
        """Return the key of the widget that holds a setting."""
        return f"{self.page}_{name}"

    def read(self) -> None:
        """Give every setting its value: of the link in a new tab, else its default."""
        marker = self.key("read")
        if not st.session_state.get(marker):
            st.session_state[marker] = True
            st.session_state[self.key("notes")] = list(self._take(st.query_params.to_dict()))
        for name, setting in self.settings.items():
            default = setting.default
            value = list(default) if setting.choices and isinstance(default, tuple) else default
            st.session_state.setdefault(self.key(name), value)

    def _take(self, query: Mapping[str, str]) -> Sequence[str]:
        notes = []
        for name, raw in query.items():
            setting = self.settings.get(name)
            if setting is None:
                continue  # of another page
            value = setting.parse(raw)
            if value is None:
                text = _("The link says {name} = {raw}; allowed: {allowed}. The default is used.")
                notes.append(text.format(name=name, raw=repr(raw[:40]), allowed=setting.allowed))
            else:
                kept = list(value) if setting.choices and isinstance(value, tuple) else value
                st.session_state[self.key(name)] = kept
        return notes

    def notes(self) -> list[str]:
        """Return what the link said and could not be used."""
        found: list[str] = st.session_state.get(self.key("notes"), [])
        return found

    def value(self, name: str) -> Value:
        """Return a setting as it is now."""
        value: Value = st.session_state.get(self.key(name), self.settings[name].default)
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """Return the chosen words of a setting."""
        value = self.value(name)
        assert isinstance(value, tuple | list)
        return tuple(map(str, value))

    def number(self, name: str) -> int:
        """Return a whole number."""
        value = self.value(name)
        assert isinstance(value, int | float)
        return int(value)

    def query(self) -> str:
        """Return the query string of a link to what is on screen."""
        known = {name: setting.write(self.value(name)) for name, setting in self.settings.items()}
        return urlencode(
            {
                name: text
                for name, text in known.items()
                if text != self.settings[name].write(self.settings[name].default)
                and len(text) <= SHORT
            }
        )
