"""What the schemes of a sweep draft with: looked for at the start, read when first needed."""

from collections.abc import Sequence

from specviz.bench.drafts import lacking, load_draft
from specviz.config import DrafterOptions, SessionConfig
from specviz.errors import ConfigError, ModelError
from specviz.heads.base import Head
from specviz.models.load import Loaded

Draft = Loaded | Head | None


class Drafts:
    """The drafters of a sweep; `reasons` says of each scheme that has none why.

    Reading every head first would keep a reader waiting for the first point.
    """

    def __init__(
        self,
        loaded: Loaded,
        schemes: Sequence[str],
        options: DrafterOptions,
        reasons: dict[str, str],
    ) -> None:
        """Look for what each scheme needs; nothing is read.

        Raises:
            ConfigError: No scheme has what it needs.
        """
        self._loaded, self._options, self.reasons = loaded, options, reasons
        self._held: dict[str, Draft] = {}
        for scheme in schemes:
            reasons.pop(scheme, None)  # of an earlier try
            if problem := lacking(loaded.target, self._config(scheme)):
                reasons[scheme] = problem
        self.schemes = tuple(scheme for scheme in schemes if scheme not in reasons)
        self._check_some()

    def get(self, scheme: str) -> Draft:
        """Return what a scheme drafts with; None is also the answer if it cannot be used.

        Raises:
            ConfigError: No scheme is left that can draft.
        """
        if scheme not in self._held and scheme in self.schemes and scheme not in self.reasons:
            try:
                self._held[scheme] = load_draft(self._loaded, self._config(scheme))
            except (ModelError, ConfigError) as error:
                self.reasons[scheme] = str(error)
                self._check_some()
        return self._held.get(scheme)

    def usable(self, scheme: str) -> bool:
        """Whether nothing is known against a scheme; plain decoding needs nothing."""
        return scheme not in self.reasons

    def _config(self, scheme: str) -> SessionConfig:
        return SessionConfig(scheme=scheme, options=self._options)

    def _check_some(self) -> None:
        if not any(scheme not in self.reasons for scheme in self.schemes):
            raise ConfigError(" ".join(dict.fromkeys(self.reasons.values())))
