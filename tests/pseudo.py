"""A language that nobody speaks, to find words on screen that no catalogue holds.

Every Latin letter of a text becomes its full-width form, so what is still in plain letters on a
page did not go through the catalogue: it is data, or it was forgotten.
"""

import html
import json
import re
import string
from collections.abc import Container, Iterator, Set
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from specviz import recordings
from specviz.config import SamplingParams, SessionConfig
from specviz.cost.hardware import GPUS
from specviz.cost.kernels import KERNELS
from specviz.cost.model_card import names as models
from specviz.drafters import SCHEMES
from specviz.metrics.definitions import definitions
from specviz.traces.store import load
from specviz.views.glossary import words as terms
from tests.words import HEADER, _entry, collected

NAME = "qps"
_WIDE = {ord(letter): ord(letter) + 0xFEE0 for letter in string.ascii_letters}
# What nobody reads: names of widgets and files, and how things look.
_MUTE = {
    "id", "icon", "shortcut", "type", "language", "format", "color", "componentName", "jsContent",
    "cssContent", "htmlContent", "deferredFileId", "elementType", "theme", "direction", "dataType",
    "labelVisibility", "align", "justify", "iconPosition", "height", "query", "f", "k", "key",
    "url", "gapSize",
}  # fmt: skip
_PLOTLY = {"title", "text", "name", "hovertemplate", "customdata", "ticktext", "x", "y"}
_VEGA = {"title", "text", "labelExpr", "description", "alt"}
_NAMES = """
    English Português specviz SmolLM Instruct Intel Xeon Processor cpu bfloat float T_target T_draft
    T_verify TARGET DRAFT DFlash DSpark EAGLE MTP vLLM SGLang TensorRT LLM llama cpp python API NeMo
    Spec-Bench DeepSpec LM Studio mlx vlm max_tokens rejected whitespace mono
    sm_ BLOCK_M mma sync wgmma tcgen cta_group
    NVIDIA Technical Blog, Sep Jun table, Co-Designing AI Models Using Speculative Decoding, on
    Blackwell, arXiv, vllm-project
"""
_LOG = "draft acceptance = 0.64479 (167 accepted / 259 generated), ..."  # a line of an engine
_BYTES = re.compile(r"\\x[0-9A-Fa-f]{2}")  # how bytes that are no text are shown
_TOKEN = re.compile(r"(?<![\uff41-\uff5a])'.*?'(?!\w)")  # tokens are shown in quotes
WORD = re.compile(r"[A-Za-z_]{3,}")


def widened(text: str) -> str:
    """Return a text in full-width letters, its placeholders untouched."""
    parts = []
    for said, name, spec, conversion in string.Formatter().parse(text):
        parts.append(said.translate(_WIDE).replace("{", "{{").replace("}", "}}"))
        if name is not None:
            parts.append("{" + name + (f"!{conversion}" if conversion else ""))
            parts.append((f":{spec}" if spec else "") + "}")
    return "".join(parts)


def write(locale: Path) -> None:
    """Write the catalogue of this language into a folder of languages."""
    path = locale / NAME / "LC_MESSAGES" / "specviz.po"
    path.parent.mkdir(parents=True)
    entries = (
        _entry(text, many, widened(text) if many is None else f"{widened(text)}\0{widened(many)}")
        for text, many in collected().items()
    )
    path.write_text(HEADER + "".join(entries), "utf-8")


def names() -> set[str]:
    """Return words that are no language: of models, GPUs, kernels, settings and recorded texts."""
    told = [NAME, *SCHEMES, *models(), _NAMES, *(gpu.title for gpu in GPUS.values())]
    told += [f"{each.title} {each.version} {each.tree}" for each in KERNELS.values()]
    for name in recordings.names():
        trace = load(recordings.path(name))
        told.append(f"{trace.environment.device_name} {trace.environment.dtype}")
        tokens = trace.prompt + trace.output
        told.append(b"".join(trace.pieces[each] for each in tokens).decode("utf-8", "ignore"))
        told += [piece.decode("utf-8", "ignore") for piece in trace.pieces.values()]
    return set(WORD.findall(" ".join(told)))


def quoted() -> set[str]:
    """Return texts that are names: what others call it, and settings as traces name them."""
    rounds = load(recordings.path(recordings.names()[0])).rounds
    peers = {each.name for each in definitions(rounds) if each.peer != "specviz"}
    settings = (field.name for kind in (SessionConfig, SamplingParams) for field in fields(kind))
    return {_LOG, *settings, *peers, *(others for _word, _meaning, others in terms())}


def plain(test: AppTest, known: Set[str], quotes: Set[str]) -> list[tuple[str, str]]:
    """Return (kind of element, text) where a page shows words in plain letters, `known` aside."""
    shown = ((kind, text) for kind, text in _page(test._tree) if text not in quotes)
    return [(kind, text) for kind, text in shown if set(WORD.findall(_TOKEN.sub("", text))) - known]


def _page(block: Block) -> Iterator[tuple[str, str]]:
    for element in block.children.values():
        proto = getattr(element, "proto", None)
        if isinstance(proto, Message):
            yield from ((element.type, text) for text in _element(element.type, proto))
        if isinstance(element, Block):
            yield from _page(element)


def _element(kind: str, proto: Message) -> Iterator[str]:
    if kind == "code":  # commands, and reports for issues: in English
        return
    if kind == "html":
        body = re.sub(r"<(style|script|title)\b.*?</\1>", " ", proto.body, flags=re.S)
        yield from re.findall(r'(?:aria-label|title|alt)="([^"]*)"', body)
        yield html.unescape(re.sub(r"<[^>]*>", " ", body))
    elif kind == "plotly_chart":
        for text in _strings(json.loads(proto.spec), _PLOTLY):
            yield re.sub(r"%\{.*?\}|<[^>]*>", " ", text)
    elif kind.endswith("vega_lite_chart"):
        spec = json.loads(proto.spec)
        yield from _strings(spec, _VEGA)
        yield from _untitled(spec)
        for data in proto.datasets:
            yield from _table(data.data.data, heads=False)
    elif kind == "bidi_component":
        yield from _strings(json.loads(proto.json or "null"), None)
    elif kind in ("dataframe", "table", "arrow_table", "arrow_data_frame"):
        yield from _table(proto.arrow_data.data)
    else:
        yield from _strings(MessageToDict(proto), None)


def _untitled(spec: object) -> Iterator[str]:
    """Yield fields of a Vega-Lite chart whose own name is shown, for want of any title.

    A title of one layer is the title of all.
    """
    bare, titled = dict[str, str](), set[str]()
    for channel, given in _channels(spec):
        ways = (given, given.get("axis") or {}, given.get("legend") or {})
        if any("title" in way for way in ways) or None in (
            given.get("axis", 1),
            given.get("legend", 1),
        ):
            titled.add(channel)
        elif "field" in given and channel not in ("detail", "order", "text", "x2", "y2", "opacity"):
            bare[channel] = given["field"]
    yield from (field for channel, field in bare.items() if channel not in titled)


def _channels(spec: object) -> Iterator[tuple[str, dict[str, object]]]:
    if isinstance(spec, list):
        for each in spec:
            yield from _channels(each)
    elif isinstance(spec, dict):
        for channel, given in spec.get("encoding", {}).items():
            for n, one in enumerate(given if isinstance(given, list) else [given]):
                yield (f"{channel} {n}" if channel == "tooltip" else channel), one
        for name, each in spec.items():
            if name != "encoding":
                yield from _channels(each)


def _table(data: bytes, heads: bool = True) -> Iterator[str]:
    table = pa.ipc.open_stream(data).read_all()
    for column in table.column_names:
        yield from (column,) if heads else ()
        yield from (value for value in table[column].to_pylist() if isinstance(value, str))


def _strings(found: object, only: Container[str] | None, key: str = "") -> Iterator[str]:
    """Yield the strings of nested lists and objects, under some keys only or under all not mute."""
    if isinstance(found, str):
        if only is None or key in only:
            yield re.sub(r":[a-z-]+(\[|/[a-z_0-9]+:)", " ", _BYTES.sub("", found).replace("\\", ""))
    elif isinstance(found, list):
        for each in found:
            yield from _strings(each, only, key)
    elif isinstance(found, dict):
        for name, each in found.items():
            if name not in _MUTE:
                yield from _strings(each, only, name)
