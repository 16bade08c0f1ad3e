"""Inference engines: their configuration for a scheme and D. They translate, they run no model."""

from collections.abc import Callable, Mapping

from specviz.engines import llama_cpp, sglang, tensorrt_llm, vllm
from specviz.engines.plan import Plan, Snippet
from specviz.errors import ConfigError
from specviz.words import _

ENGINES: Mapping[str, Callable[[Plan], Snippet]] = {
    "vllm": vllm.snippet,
    "sglang": sglang.snippet,
    "tensorrt-llm": tensorrt_llm.snippet,
    "llama.cpp": llama_cpp.snippet,
}
READERS: Mapping[str, Callable[[str], int]] = {
    "vllm": vllm.draft_length,
    "sglang": sglang.draft_length,
    "tensorrt-llm": tensorrt_llm.draft_length,
    "llama.cpp": llama_cpp.draft_length,
}


def export(engine: str, plan: Plan) -> Snippet:
    """Return the configuration of `engine` for a plan.

    Raises:
        ConfigError: the engine is unknown here.
        UnsupportedByEngine: it cannot serve this; the message names the nearest thing it does.
    """
    if engine not in ENGINES:
        text = _("the engine is {name!r}; known are {names}")
        raise ConfigError(text.format(name=engine[:80], names=", ".join(ENGINES)))
    return ENGINES[engine](plan)
