"""Everything this package raises on purpose.

SpecvizError
├── ConfigError           a setting is out of range or unknown (also a ValueError)
│   ├── UnknownScheme     no drafter of that name
│   ├── UnsupportedByEngine  an inference engine cannot serve that; names the nearest it can
│   └── PromptError       empty prompt, or longer than the context
├── DraftError            a drafter proposed something malformed (bug or hostile input)
├── ModelError            a model cannot be used
│   ├── ModelNotFound     no such file, folder or hub id, or no way to fetch it
│   ├── ModelCorrupt      the files are there but damaged or incomplete
│   ├── UnsupportedModel  recurrent state, pickle weights, remote code, unknown layout
│   └── VocabMismatch     drafter and target do not share a vocabulary
├── NumericsError         NaN or Inf in p or q; names the round and position
├── CacheError            the user cache cannot be written, filled or read
├── TraceError            a trace file is damaged, hostile or from a newer version
├── Busy                  the engine is already running something
└── Cancelled             long work was told to stop; what it had not finished is not kept

Every message says what was given, what is allowed and what to do.
"""


class SpecvizError(Exception):
    """Root of the tree: catch this to catch everything raised on purpose."""


class ConfigError(SpecvizError, ValueError): ...


class UnknownScheme(ConfigError): ...


class UnsupportedByEngine(ConfigError): ...


class PromptError(ConfigError): ...


class DraftError(SpecvizError, ValueError): ...


class ModelError(SpecvizError): ...


class ModelNotFound(ModelError): ...


class ModelCorrupt(ModelError): ...


class UnsupportedModel(ModelError): ...


class VocabMismatch(ModelError): ...


class NumericsError(SpecvizError): ...


class CacheError(SpecvizError): ...


class TraceError(SpecvizError): ...


class Busy(SpecvizError): ...


class Cancelled(SpecvizError): ...
