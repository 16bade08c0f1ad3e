"""Flags that describe a request, and the request they describe."""

import argparse
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.bench import prompts
from specviz.config import (
    DrafterOptions,
    SamplingParams,
    SessionConfig,
    read_layer_ids,
    read_logit_bias,
)
from specviz.drafters import SCHEMES, check_scheme
from specviz.errors import ConfigError, PromptError
from specviz.words import _

if TYPE_CHECKING:
    from specviz.bench.runner import Request

_SAMPLING = SamplingParams()
_CONFIG = SessionConfig()
_OPTIONS = DrafterOptions()


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose the target and where it runs."""
    group = parser.add_argument_group("target")
    group.add_argument(
        "--model",
        metavar="M",
        help="folder, GGUF file or hub id (default: the embedded SmolLM2-135M-Instruct)",
    )
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    group.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 (default: auto)")


def add_prompt(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what is decoded."""
    group = parser.add_argument_group("prompt").add_mutually_exclusive_group()
    group.add_argument("--prompt", metavar="TEXT", help="the prompt itself")
    group.add_argument("--prompt-file", metavar="FILE", help="read it from a file, - for stdin")
    group.add_argument(
        "--prompt-id",
        metavar="ID",
        help="a built-in prompt: " + ", ".join(prompt.id for prompt in prompts.BUILT_IN),
    )
    parser.add_argument(
        "--raw", action="store_true", help="no chat template: the model continues the text"
    )


def add_scheme(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the drafter and of verification."""
    group = parser.add_argument_group("scheme")
    group.add_argument(
        "--scheme", default=_CONFIG.scheme, help=f"{', '.join(SCHEMES)} (default: %(default)s)"
    )
    group.add_argument("-D", "--draft-length", type=int, default=_CONFIG.draft_length, metavar="D")
    group.add_argument("--verifier", default=_CONFIG.verifier, help="auto, greedy, sampled, block")
    group.add_argument("--detail", default=_CONFIG.detail, help="off, light, full")
    group.add_argument("--draft-model", metavar="M", help="folder, GGUF file or hub id")
    group.add_argument("--draft-greedy", action="store_true", help="drafts are the draft's argmax")
    group.add_argument("--draft-min-p", type=float, default=_OPTIONS.draft_min_p, metavar="P")
    group.add_argument("--head", metavar="DIR", help="folder of a head (default: the shipped one)")
    group.add_argument("--layer-ids", default="", metavar="I,J", help="hidden states a head reads")
    group.add_argument("--tree", metavar="K,DEPTH", help="eagle3: a tree of D nodes, not a chain")
    group.add_argument(
        "--confidence",
        type=float,
        default=_OPTIONS.confidence_threshold,
        metavar="P",
        help="dspark: stop before a slot less sure (default: off)",
    )
    group.add_argument("--ngram-min", type=int, default=_OPTIONS.ngram_min, metavar="N")
    group.add_argument("--ngram-max", type=int, default=_OPTIONS.ngram_max, metavar="N")
    group.add_argument("--ngram-tie", default=_OPTIONS.ngram_tie, metavar="RULE")
    group.add_argument("--suffix-depth", type=int, default=_OPTIONS.suffix_max_depth, metavar="N")
    group.add_argument("--suffix-factor", type=float, default=_OPTIONS.suffix_max_factor)
    group.add_argument("--suffix-min-prob", type=float, default=_OPTIONS.suffix_min_prob)


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add the flags of sampling and stopping."""
    group = parser.add_argument_group("sampling")
    group.add_argument("--max-tokens", type=int, default=_SAMPLING.max_tokens, metavar="N")
    group.add_argument("--temperature", type=float, default=_SAMPLING.temperature, metavar="T")
    group.add_argument("--top-p", type=float, default=_SAMPLING.top_p, metavar="P")
    group.add_argument("--top-k", type=int, default=_SAMPLING.top_k, metavar="K")
    group.add_argument("--min-p", type=float, default=_SAMPLING.min_p, metavar="P")
    for name in ("repetition", "frequency", "presence"):
        default: float = getattr(_SAMPLING, f"{name}_penalty")
        group.add_argument(f"--{name}-penalty", type=float, default=default, metavar="X")
    group.add_argument("--logit-bias", action="append", default=[], metavar="ID=X")
    group.add_argument("--seed", type=int, default=_SAMPLING.seed, metavar="N")
    group.add_argument("--stop", action="append", default=[], metavar="TEXT")
    group.add_argument("--ignore-eos", action="store_true", help="go on past the model's own end")


def request(args: argparse.Namespace) -> "Request":
    """Return the request the flags describe.

    Raises:
        ConfigError: A setting is out of range; PromptError: there is no usable prompt.
    """
    prompt, params, chosen = prompt_text(args), sampling(args), config(args)
    title = prompts.find(args.prompt_id).title if args.prompt_id else ""
    # Bad settings are refused above, before torch takes its second to be imported.
    from specviz.bench.runner import Request

    return Request(prompt=prompt, chat=not args.raw, params=params, config=chosen, title=title)


def prompt_text(args: argparse.Namespace) -> str:
    """Return the prompt from wherever the flags say it is."""
    if args.prompt is not None:
        return str(args.prompt)
    if args.prompt_id is not None:
        return prompts.find(args.prompt_id).text
    if args.prompt_file is None:
        raise PromptError(_("no prompt was given; use --prompt, --prompt-file or --prompt-id"))
    try:
        if args.prompt_file == "-":
            return sys.stdin.read()
        return Path(args.prompt_file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(
            _(
                "the prompt file {prompt_file!r} cannot be read ({error}); give a file of UTF-8 "
                "text, or - for standard input"
            ).format(prompt_file=args.prompt_file, error=error)
        ) from error


def config(args: argparse.Namespace) -> SessionConfig:
    """Return the session configuration of the flags."""
    check_scheme(args.scheme)
    top_k, depth = tree(args.tree)
    return SessionConfig(
        scheme=args.scheme,
        draft_length=args.draft_length,
        verifier=args.verifier,
        detail=args.detail,
        options=DrafterOptions(
            ngram_min=args.ngram_min,
            ngram_max=args.ngram_max,
            ngram_tie=args.ngram_tie,
            suffix_max_depth=args.suffix_depth,
            suffix_max_factor=args.suffix_factor,
            suffix_min_prob=args.suffix_min_prob,
            draft_model=args.draft_model,
            draft_sampled=not args.draft_greedy,
            draft_min_p=args.draft_min_p,
            head=args.head,
            layer_ids=read_layer_ids(args.layer_ids),
            tree_top_k=top_k,
            tree_depth=depth,
            confidence_threshold=args.confidence,
        ),
    )


def tree(text: str | None) -> tuple[int, int]:
    """Read `K,DEPTH`; a depth of 0, a chain, if nothing is given."""
    if text is None:
        return _OPTIONS.tree_top_k, _OPTIONS.tree_depth
    top_k, _comma, depth = text.partition(",")
    try:
        return int(top_k), int(depth)
    except ValueError:
        raise ConfigError(
            _("tree is {text!r}; allowed: K,DEPTH, as 8,5: 8 children per node, 5 levels").format(
                text=text
            )
        ) from None


def sampling(args: argparse.Namespace) -> SamplingParams:
    """Return the sampling parameters of the flags."""
    return SamplingParams(
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        min_p=args.min_p,
        repetition_penalty=args.repetition_penalty,
        frequency_penalty=args.frequency_penalty,
        presence_penalty=args.presence_penalty,
        logit_bias=tuple(chain.from_iterable(map(read_logit_bias, args.logit_bias))),
        max_tokens=args.max_tokens,
        seed=args.seed,
        stop=tuple(args.stop),
        ignore_eos=args.ignore_eos,
    )
