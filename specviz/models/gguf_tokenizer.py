"""The tokenizer inside a GGUF file, written as tokenizer.json and tokenizer_config.json."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing

from specviz.errors import ModelCorrupt, UnsupportedModel
from specviz.words import _

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # token types of the format

# How each family cuts text before byte-pair merges; None is the regular expression of GPT-2.
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_SPLITS: dict[str, str | None] = {
    "default": None,
    "gpt-2": None,
    "smollm": None,
    "llama-bpe": rf"{_CONTRACTIONS}\p{{N}}{{1,3}}{_REST}",
    "qwen2": rf"{_CONTRACTIONS}\p{{N}}{_REST}",
}
_SINGLE_DIGITS = {"smollm"}
_ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}

Metadata = Mapping[str, object]


def write_tokenizer(metadata: Metadata, folder: Path) -> None:
    """Write the two files into `folder`.

    Raises:
        ModelCorrupt: parts of the vocabulary are missing or contradict each other.
        UnsupportedModel: a kind of tokenizer that is not rebuilt here.
    """
    kind = metadata.get("tokenizer.ggml.model")
    if kind == "gpt2":
        tokenizer, adds_bos = (
            _byte_level(metadata),
            metadata.get("tokenizer.ggml.pre") in ("llama-bpe",),
        )
    elif kind == "llama":
        tokenizer, adds_bos = _sentencepiece(metadata), True
    else:
        raise UnsupportedModel(
            _(
                "the GGUF file has a tokenizer of kind {kind!r}; supported: gpt2 (byte-level BPE) "
                "and llama (SentencePiece BPE). Use the safetensors version of this model instead."
            ).format(kind=kind)
        )
    tokens = _strings(metadata, "tokens")
    types = _numbers(metadata, "token_type") or [NORMAL] * len(tokens)
    marked = [(t, kind) for t, kind in zip(tokens, types, strict=False) if kind in (CONTROL, 4)]
    tokenizer.add_special_tokens([_added(t, True) for t, kind in marked if kind == CONTROL])
    tokenizer.add_tokens([_added(t, False) for t, kind in marked if kind == USER_DEFINED])
    roles = _roles(metadata, tokens)
    adds_bos = bool(metadata.get("tokenizer.ggml.add_bos_token", adds_bos))
    if adds_bos and "bos_token" in roles:
        bos = roles["bos_token"]
        tokenizer.post_processor = TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, tokens.index(bos))]
        )
    # Written by Python: the library reports a full disk as a bare Exception.
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), "utf-8")
    config: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "add_bos_token": adds_bos,
        **roles,
    }
    if template := metadata.get("tokenizer.chat_template"):
        config["chat_template"] = template
    text = json.dumps(config, indent=1, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(text, "utf-8")


def end_ids(metadata: Metadata) -> list[int]:
    """Ids that end a turn, the main one first."""
    keys = ("eos_token_id", "eot_token_id", "eom_token_id")
    found = [metadata.get(f"tokenizer.ggml.{key}") for key in keys]
    return list(dict.fromkeys(id_ for id_ in found if isinstance(id_, int)))


def _byte_level(metadata: Metadata) -> Tokenizer:
    pre = str(metadata.get("tokenizer.ggml.pre", "default"))
    if pre not in _SPLITS:
        raise UnsupportedModel(
            _(
                "the GGUF file splits text by the rules of {pre!r}; supported: {splits}. Use the "
                "safetensors version of this model instead."
            ).format(pre=pre, splits=", ".join(_SPLITS))
        )
    merges = [merge.split(" ", 1) for merge in _strings(metadata, "merges")]
    pairs = [(merge[0], merge[-1]) for merge in merges]
    tokenizer = Tokenizer(
        _bpe(_vocabulary(metadata), pairs, ignore_merges=pre == "llama-bpe", byte_fallback=False)
    )
    split = _SPLITS[pre]
    steps: list[pre_tokenizers.PreTokenizer] = []
    if pre in _SINGLE_DIGITS:
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    if split is not None:
        steps.append(pre_tokenizers.Split(Regex(split), behavior="isolated"))
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def _sentencepiece(metadata: Metadata) -> Tokenizer:
    """Rebuild merges from scores: of all ways to split a piece in two, best-scored piece first."""
    vocabulary = _vocabulary(metadata)
    scores = _numbers(metadata, "scores")
    if len(scores) != len(vocabulary):
        raise ModelCorrupt(
            _("the GGUF file has {tokens} tokens but {scores} scores").format(
                tokens=len(vocabulary), scores=len(scores)
            )
        )
    pairs: list[tuple[float, int, int, str, str]] = []
    for piece, id_ in vocabulary.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocabulary and right in vocabulary:
                pairs.append((-scores[id_], vocabulary[left], vocabulary[right], left, right))
    pairs.sort()
    merges = [(left, right) for *_, left, right in pairs]
    tokenizer = Tokenizer(_bpe(vocabulary, merges, ignore_merges=False, byte_fallback=True))
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", "▁")]
    ends: list[decoders.Decoder] = [
        decoders.Replace("▁", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
    ]
    if metadata.get("tokenizer.ggml.add_space_prefix", True):
        steps.insert(0, normalizers.Prepend("▁"))
        ends.append(decoders.Strip(" ", 1, 0))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.decoder = decoders.Sequence(ends)
    return tokenizer


def _bpe(
    vocabulary: dict[str, int],
    merges: list[tuple[str, str]],
    *,
    ignore_merges: bool,
    byte_fallback: bool,
) -> BPE:
    for left, right in merges:
        if not {left, right, left + right} <= vocabulary.keys():
            raise ModelCorrupt(
                _("the GGUF file merges {left!r} and {right!r}, which its vocabulary lacks").format(
                    left=left, right=right
                )
            )
    return BPE(
        vocab=vocabulary,
        merges=merges,
        fuse_unk=byte_fallback,
        byte_fallback=byte_fallback,
        ignore_merges=ignore_merges,
        unk_token="<unk>" if byte_fallback and "<unk>" in vocabulary else None,
    )


def _vocabulary(metadata: Metadata) -> dict[str, int]:
    tokens = _strings(metadata, "tokens")
    vocabulary = {token: id_ for id_, token in enumerate(tokens)}
    if not tokens or len(vocabulary) != len(tokens):
        raise ModelCorrupt(
            _("the GGUF file names {count} tokens, {different} of them different").format(
                count=len(tokens), different=len(vocabulary)
            )
        )
    return vocabulary


def _added(token: str, special: bool) -> AddedToken:
    return AddedToken(token, special=special, normalized=False)


def _roles(metadata: Metadata, tokens: Sequence[str]) -> dict[str, str]:
    ids = {
        f"{ours}_token": metadata.get(f"tokenizer.ggml.{theirs}_token_id")
        for ours, theirs in _ROLES.items()
    }
    return {
        role: tokens[id_]
        for role, id_ in ids.items()
        if isinstance(id_, int) and 0 <= id_ < len(tokens)
    }


def _strings(metadata: Metadata, key: str) -> list[str]:
    value = metadata.get(f"tokenizer.ggml.{key}")
    if not isinstance(value, list):
        raise ModelCorrupt(
            _("the GGUF file lacks tokenizer.ggml.{key}; download it again").format(key=key)
        )
    return [str(item) for item in value]


def _numbers(metadata: Metadata, key: str) -> list[float]:
    value = metadata.get(f"tokenizer.ggml.{key}")
    return [float(item) for item in value] if isinstance(value, list) else []
