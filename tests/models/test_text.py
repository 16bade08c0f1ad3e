"""Token bytes are exact, chat templates are the model's own, damaged files are named."""

import json
from pathlib import Path

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from specviz.errors import ConfigError, ModelCorrupt, ModelNotFound, PromptError, UnsupportedModel
from specviz.models.text import Tokenizer, byte_alphabet
from tests.models.gguf_files import TEMPLATE

TEXTS = [
    "hello world",
    "日本語とEnglish、混ぜて。",
    "🎉👩‍👩‍👧‍👦 e\u0301 \u202eabc \x00\x7f",
    "<b>bold</b> &amp; $x_1$ **md** [a](b)",
    "\n\n\t  two  spaces \r\n",
    "12345.678",
    "a<|im_end|>b",
    " ",
    "",
]


def byte_level() -> tokenizers.Tokenizer:
    vocabulary = {character: id_ for id_, character in enumerate(byte_alphabet())}
    vocabulary |= {"he": 256, "Ġw": 257}
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, [("h", "e"), ("Ġ", "w")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken("<|im_end|>", special=True)])
    backend.add_tokens([AddedToken("<think>")])
    return backend


def sentencepiece() -> tokenizers.Tokenizer:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", "h", "i", "▁h"]
    vocabulary = {piece: id_ for id_, piece in enumerate(pieces)}
    backend = tokenizers.Tokenizer(
        models.BPE(vocabulary, [("▁", "h")], byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    )
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    backend.add_special_tokens(["<unk>", "<s>", "</s>"])
    return backend


@pytest.fixture
def folder(tmp_path) -> Path:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    config = {"chat_template": TEMPLATE, "eos_token": {"content": "<|im_end|>"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def rewrite(folder: Path, **config: object) -> Path:
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_join_to_the_text_byte_for_byte(folder, text):
    tokenizer = Tokenizer.from_folder(folder)
    tokens = tokenizer.encode(text)
    assert b"".join(map(tokenizer.piece, tokens)) == text.encode()
    assert tokenizer.decode(tokens) == text


@pytest.mark.parametrize("text", TEXTS)
def test_sentencepiece_bytes_are_exact_too(text):
    tokenizer = Tokenizer(sentencepiece())
    assert b"".join(map(tokenizer.piece, tokenizer.encode(text))) == text.encode()


@pytest.mark.parametrize("text", TEXTS)
def test_the_embedded_model_keeps_every_byte(embedded_model, text):
    tokenizer = Tokenizer.from_folder(embedded_model)
    assert b"".join(map(tokenizer.piece, tokenizer.encode(text))) == text.encode()


def test_the_embedded_model_reads_a_chat_as_it_was_trained(embedded_model):
    tokenizer = Tokenizer.from_folder(embedded_model)
    opening = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging"
    text = f"{opening} Face<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.chat("hi") == tokenizer.encode(text)
    assert tokenizer.chat("hi")[:3] == (1, 9690, 198)
    assert tokenizer.eos == (2,)
    assert tokenizer.vocab_size == 49152
    assert tokenizer.is_special(2)
    assert not tokenizer.is_special(198)


def test_the_embedded_model_reads_digits_one_by_one(embedded_model):
    tokenizer = Tokenizer.from_folder(embedded_model)
    assert [tokenizer.piece(t) for t in tokenizer.encode("x 120")] == [b"x", b" ", b"1", b"2", b"0"]


def test_every_id_of_the_embedded_model_has_content(embedded_model):
    tokenizer = Tokenizer.from_folder(embedded_model)
    contents = [tokenizer.content(id_) for id_ in range(tokenizer.vocab_size)]
    assert len(set(contents)) == tokenizer.vocab_size
    assert all(contents)


def test_a_character_cut_in_two_shows_as_the_replacement_sign(folder):
    tokenizer = Tokenizer.from_folder(folder)
    first, *rest = tokenizer.encode("é")
    assert tokenizer.piece(first) == b"\xc3"
    assert tokenizer.decode([first]) == "\ufffd"
    assert tokenizer.decode([first, *rest]) == "é"


def test_ids_outside_the_vocabulary_have_no_content(folder):
    tokenizer = Tokenizer.from_folder(folder)
    for token in (-1, tokenizer.vocab_size, 10**9):
        assert tokenizer.piece(token) == b""
        assert tokenizer.content(token) is None


def test_added_tokens_stand_for_their_literal_text(folder):
    tokenizer = Tokenizer.from_folder(folder)
    end, think = tokenizer.encode("<|im_end|><think>")
    assert (tokenizer.piece(end), tokenizer.is_special(end)) == (b"<|im_end|>", True)
    assert (tokenizer.piece(think), tokenizer.is_special(think)) == (b"<think>", False)


def test_end_tokens_are_gathered_from_all_three_places(folder):
    (folder / "generation_config.json").write_text('{"eos_token_id": [7, 8]}')
    (folder / "config.json").write_text('{"eos_token_id": 7}')
    assert Tokenizer.from_folder(folder).eos == (7, 8, 258)


def test_a_chat_is_one_user_turn_and_the_opening_of_the_answer(folder):
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.has_chat_template
    turn = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.decode(tokenizer.chat("hi")) == turn
    system = "<|im_start|>system\nbe brief<|im_end|>\n"
    assert tokenizer.decode(tokenizer.chat("hi", system="be brief")) == system + turn


def test_the_template_may_be_a_file_or_one_of_several(folder):
    named = [{"name": "x", "template": "X"}, {"name": "default", "template": "D"}]
    rewrite(folder, chat_template=named)
    assert Tokenizer.from_folder(folder).decode(Tokenizer.from_folder(folder).chat("hi")) == "D"
    (folder / "chat_template.jinja").write_text("J{{ messages[0].content }}")
    assert Tokenizer.from_folder(folder).decode(Tokenizer.from_folder(folder).chat("hi")) == "Jhi"


def test_templates_have_the_helpers_they_are_written_for(folder):
    source = (
        "{%- for m in messages -%}{%- if loop.index > 9 -%}{%- break -%}{%- endif -%}"
        "{{ eos_token }}{{ m | tojson }}{% generation %}!{% endgeneration %}{%- endfor -%}"
        "{{ strftime_now('%%') }}{{ tools is none }}"
    )
    rewrite(folder, chat_template=source, eos_token="<|im_end|>")
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.decode(tokenizer.chat("é")) == (
        '<|im_end|>{"role": "user", "content": "é"}!%True'
    )


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('System role not supported') }}",
        "{{ messages[5].content }}",
        "{{ 1 / 0 }}",
        "{{ messages.append(1) }}",
        "{{ ''.__class__.__mro__ }}",
        "{% for i in range(10**9) %}x{% endfor %}",
    ],
)
def test_a_template_that_fails_is_a_named_error(folder, source):
    tokenizer = Tokenizer.from_folder(rewrite(folder, chat_template=source))
    with pytest.raises(ConfigError, match="switch the chat template off"):
        tokenizer.chat("hi")


def test_a_template_that_cannot_be_parsed_is_a_named_error(folder):
    with pytest.raises(ModelCorrupt, match="chat template"):
        Tokenizer.from_folder(rewrite(folder, chat_template="{% if %}"))


@pytest.mark.parametrize(
    "wrong", [3, True, {"a": "b"}, ["x"], [{"name": "default", "template": 5}]]
)
def test_a_template_that_is_no_text_is_a_named_error(folder, wrong):
    with pytest.raises(ModelCorrupt, match=r"tokenizer_config\.json has a chat_template"):
        Tokenizer.from_folder(rewrite(folder, chat_template=wrong))


def test_a_template_file_that_is_not_utf8_is_a_named_error(folder):
    (folder / "chat_template.jinja").write_bytes(b"{{ messages }}\xff")
    with pytest.raises(ModelCorrupt, match=r"chat_template\.jinja is damaged"):
        Tokenizer.from_folder(folder)


@pytest.mark.parametrize("source", ["a\ud83d", "{{ '\\ud83d' }}"])
def test_a_template_that_writes_half_a_surrogate_pair_is_a_named_error(folder, source):
    tokenizer = Tokenizer.from_folder(rewrite(folder, chat_template=source))
    with pytest.raises(ConfigError, match="refused this prompt"):
        tokenizer.chat("hi")


def test_without_a_template_chat_says_to_use_raw_text(folder):
    tokenizer = Tokenizer.from_folder(rewrite(folder))
    assert not tokenizer.has_chat_template
    with pytest.raises(ConfigError, match="raw text"):
        tokenizer.chat("hi")


def test_half_a_surrogate_pair_is_no_prompt(folder):
    with pytest.raises(PromptError, match="character 1"):
        Tokenizer.from_folder(folder).encode("a\ud83d")
    with pytest.raises(PromptError, match="character 1"):  # of the prompt, not of the template
        Tokenizer.from_folder(folder).chat("a\ud83d")


def test_padding_and_truncation_of_the_file_are_switched_off(folder):
    backend = byte_level()
    backend.enable_truncation(3)
    backend.enable_padding(length=10)
    backend.save(str(folder / "tokenizer.json"))
    assert len(Tokenizer.from_folder(folder).encode("12345678")) == 8


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "config.json"])
def test_a_damaged_file_is_named(folder, name):
    (folder / name).write_text('{"a": ')
    with pytest.raises(ModelCorrupt, match=name):
        Tokenizer.from_folder(folder)


def test_older_files_are_converted(tmp_path):
    vocabulary = {character: id_ for id_, character in enumerate(byte_alphabet())}
    vocabulary |= {"he": 256, "<|endoftext|>": 257}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nh e\n")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.piece(tokenizer.encode("hey")[0]) == b"he"


def test_a_folder_without_a_tokenizer_says_what_is_missing(tmp_path):
    with pytest.raises(ModelNotFound, match=r"tokenizer\.json"):
        Tokenizer.from_folder(tmp_path)


def test_code_of_the_models_author_is_never_run(tmp_path):
    (tmp_path / "vocab.json").write_text("{}")
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    rewrite(tmp_path, auto_map={"AutoTokenizer": ["evil.Evil", None]})
    with pytest.raises(UnsupportedModel, match="never run"):
        Tokenizer.from_folder(tmp_path)
