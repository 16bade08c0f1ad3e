"""Long prompts out of a corpus of short ones: summaries of documents, questions on passages.

A head that was trained on short texts drafts badly behind a long prompt: it never saw such
positions, nor how much of an answer is copied. `python -m specviz.train.long_prompts --help`.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SUMMARIES = (
    "Summarize the following text.\n\n{text}",
    "{text}\n\nWrite a summary of the text above in a few sentences.",
    "What are the main points of this document?\n\n{text}",
    "Read the text and shorten it to one paragraph.\n\nText:\n{text}\n\nShort version:",
    "{text}\n\nIn short:",
)
QUESTIONS = (
    "Use the passages to answer the question.\n\n{passages}\n\nQuestion: {question}",
    "{passages}\n\nWith the documents above in mind, answer: {question}",
    "Question: {question}\n\nWhat was found:\n{passages}\n\nAnswer the question.",
)
PASSAGE = "[{number}] {text}"


@dataclass(frozen=True, slots=True)
class Material:
    """Texts long enough to be documents, and short prompts that ask something."""

    texts: tuple[str, ...]
    questions: tuple[str, ...]


def read_material(paths: Sequence[Path]) -> Material:
    """Read `.parquet` corpora with the text columns `prompt` and `response`."""
    import pyarrow.parquet

    texts, questions = [], []
    for path in paths:
        table = pyarrow.parquet.read_table(path, columns=["prompt", "response"])
        for row in table.to_pylist():
            if len(row["response"]) > 300 and _is_prose(row["response"]):
                texts.append(_whole_sentences(row["response"]))
            if len(row["prompt"]) < 160 and row["prompt"].rstrip().endswith("?"):
                questions.append(row["prompt"].strip())
    return Material(tuple(dict.fromkeys(texts)), tuple(dict.fromkeys(questions)))


def long_prompts(
    material: Material, count: int, characters: tuple[int, int], seed: int = 0
) -> Iterator[dict[str, str]]:
    """Make `count` prompts, each of a length drawn between `characters`, by turns of each kind."""
    draw = random.Random(seed)
    for number in range(count):
        wanted = draw.randint(*characters)
        texts = _enough(material.texts, wanted, draw)
        if number % 2:
            passages = [PASSAGE.format(number=i, text=text) for i, text in enumerate(texts, 1)]
            template, question = draw.choice(QUESTIONS), draw.choice(material.questions)
            prompt = template.format(passages="\n\n".join(passages), question=question)
            yield {"prompt": prompt, "source": "passages"}
        else:
            prompt = draw.choice(SUMMARIES).format(text="\n\n".join(texts))
            yield {"prompt": prompt, "source": "summary"}


def _enough(texts: Sequence[str], wanted: int, draw: random.Random) -> list[str]:
    found: list[str] = []
    while sum(map(len, found)) < wanted:
        found.append(draw.choice(texts))
    return found


def _is_prose(text: str) -> bool:
    """Whether a text has sentences, and does not go round in circles as small models do."""
    sentences = [part.strip() for part in text.split(". ") if part.strip()]
    return "```" not in text and len(sentences) > 2 and len(set(sentences)) == len(sentences)


def _whole_sentences(text: str) -> str:
    """Cut off a last sentence that ran into the token budget."""
    end = max(text.rfind(mark) for mark in ".!?")
    return text[: end + 1].strip() if end > 0 else text.strip()


def main() -> None:
    """Write prompts for `train --prompts`."""
    parser = argparse.ArgumentParser(prog="python -m specviz.train.long_prompts")
    parser.add_argument("--data", nargs="+", required=True, type=Path, metavar="F", help=".parquet")
    parser.add_argument("--out", required=True, type=Path, metavar="F", help=".jsonl of prompts")
    parser.add_argument("--count", type=int, default=2000, metavar="N")
    parser.add_argument(
        "--characters", type=int, nargs=2, default=(1500, 5500), metavar=("LEAST", "MOST")
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    args = parser.parse_args()
    prompts = long_prompts(
        read_material(args.data), args.count, tuple(args.characters), seed=args.seed
    )
    with args.out.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(prompt) + "\n" for prompt in prompts)


if __name__ == "__main__":
    main()
