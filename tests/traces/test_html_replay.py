"""The HTML replay as a file: small, closed to the network, and inert whatever a token says."""

import base64
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from specviz import recordings
from specviz.traces.html_replay import replay
from specviz.traces.schema import redact
from specviz.traces.store import load
from tests.traces.samples import sampled_trace, trace_of
from tests.views.stories import HOSTILE, Story

MORE_HOSTILE = (
    "</script><script>alert(1)</script>",
    "</title><svg onload=alert(1)>",
    "<!--",
    "-->",
    "]]>",
    "</style><style>*{display:none}",
    "</noscript>",
    "</pre></textarea><iframe src=//example.org>",
    '" onmouseover="alert(1)',
    "\ud83d",
    "\u2028\u2029",
    "javascript:alert(1)",
)
TAGS = {
    "html", "head", "meta", "title", "link", "style", "body", "header", "h1", "ul", "li", "main",
    "div", "p", "pre", "footer", "script",
}  # fmt: skip


class Read(HTMLParser):
    """What a browser finds in the file."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.setdefault(self.tags[-1][0] if self.tags else "", "")
        self.texts[self.tags[-1][0] if self.tags else ""] += data


def data_of(page: str):
    packed = re.search(r'<script type="text/plain" id="run">([^<]*)<', page)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_512_tokens_in_full_detail_stay_below_1_mb():
    trace = sampled_trace(180)
    assert len(trace.output) >= 512
    assert len(replay(trace).encode()) < 1_000_000


@pytest.mark.parametrize("name", recordings.names())
def test_every_recording_becomes_a_replay_with_all_its_rounds(name):
    trace = load(recordings.path(name))
    data = data_of(replay(trace))
    assert len(data["rounds"]) == len(data["pane"]["rounds"]) == len(trace.rounds)
    committed = [token for row in data["pane"]["rounds"] for token in row["t"]]
    assert tuple(committed) == trace.output


@pytest.mark.parametrize("text", [*HOSTILE, *MORE_HOSTILE])
def test_hostile_text_stays_text(text):
    safe = text.encode("utf-8", "surrogatepass")
    trace = Story(safe).add([safe, " ok"], 1, safe).trace()
    card = replace(trace.target, name=text)
    page = replay(replace(trace, title=text, target=card, prompt_text=text))
    read = Read(page)
    assert {tag for tag, _attributes in read.tags} <= TAGS
    assert [tag for tag, _ in read.tags].count("script") == 2
    assert [tag for tag, _ in read.tags].count("style") == 1
    for _tag, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on")]
    assert data_of(page)["rounds"]


def test_nothing_is_asked_of_the_network():
    page = replay(trace_of())
    for tag, attributes in Read(page).tags:
        address = attributes.get("src") or attributes.get("href")
        assert address in (None, "data:,"), tag
    policy = next(a["content"] for _t, a in Read(page).tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\b\s*\(", page)


def test_a_redacted_replay_has_nothing_of_the_prompt():
    story = Story("secret words").add([" a"], 1, " b")
    trace = replace(story.trace(), prompt_text="secret words", title="secret words")
    page = replay(redact(trace))
    assert "secret" not in page
    data = json.dumps(data_of(page), ensure_ascii=False)
    assert "secret" not in data
    assert "The prompt was left out" in data
    assert "secret" in json.dumps(data_of(replay(trace)))


def test_the_text_is_there_without_a_script():
    trace = Story("p").add([" one <two>"], 1, " three").trace()
    assert trace.text in Read(replay(trace)).texts["pre"]


def test_a_run_without_rounds_is_a_page_too():
    assert data_of(replay(trace_of((), lossless=None, finish=None)))["rounds"] == []
