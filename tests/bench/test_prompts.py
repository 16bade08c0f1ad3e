from collections import Counter

import pytest

from specviz.bench.prompts import BUILT_IN, CLASSES, find, of_class
from specviz.errors import ConfigError


def test_every_class_has_at_least_three_prompts() -> None:
    counts = Counter(prompt.prompt_class for prompt in BUILT_IN)
    assert set(counts) == set(CLASSES)
    assert min(counts.values()) >= 3


def test_ids_are_unique_and_fit_in_a_link() -> None:
    ids = [prompt.id for prompt in BUILT_IN]
    assert len(set(ids)) == len(ids)
    assert all(id_.isascii() and id_.replace("-", "").isalnum() for id_ in ids)


def test_b9_the_users_own_test_of_a_highlighter_is_built_in() -> None:
    assert find("copy-paragraph").text == "Write the same paragraph three times"


def test_an_edit_has_the_whole_text_it_edits() -> None:
    assert all(prompt.text.count("```") == 2 for prompt in of_class(["edit"]))


def test_an_unknown_id_lists_the_ids() -> None:
    with pytest.raises(ConfigError, match="copy-letter"):
        find("nope")


def test_an_unknown_class_lists_the_classes() -> None:
    with pytest.raises(ConfigError, match="maths"):
        of_class(["poems"])
