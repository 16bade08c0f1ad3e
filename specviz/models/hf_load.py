"""Loading models of transformers: refused where drafting would change what they say."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from specviz.errors import ModelCorrupt, UnsupportedModel
from specviz.events import EMPTY, ROOT, Draft
from specviz.models.checkpoint import Checkpoint
from specviz.models.hf import CausalLM, HFTarget
from specviz.models.refusals import recurrent, refusal
from specviz.models.target import TargetConfig
from specviz.words import _

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

Loading = tuple[CausalLM, Mapping[str, Collection[object]]]
# how far the same row may be apart when it is computed in another way, in spreads of the logits
TOLERANCE = {torch.float32: 1e-3, torch.float16: 0.1, torch.bfloat16: 0.3}
_TREE = Draft((4, 5, 6, 7), (ROOT, ROOT, 0, 1))
_TEXT = (1, 2, 3, 4, 5, 6, 7)


def load_hf(
    checkpoint: Checkpoint,
    settings: Mapping[str, object],
    *,
    name: str,
    device: torch.device,
    dtype: torch.dtype,
) -> HFTarget:
    """Load any decoder-only model transformers knows, and try out that dropping tokens is exact.

    Raises:
        UnsupportedModel: recurrent state, encoder-decoder, remote code, an unknown type.
        ModelCorrupt: weights that are missing or of another shape.
    """
    if reason := refusal(settings):
        raise UnsupportedModel(_("{name} cannot be run: {reason}").format(name=name, reason=reason))
    checkpoint.shards()  # says what is wrong with the files better than transformers does
    config = _read_config(checkpoint, name)
    model = _read_model(checkpoint, config, name, dtype)
    target = HFTarget(_on(model, device), _shape(model, settings, name, checkpoint.sha()))
    if device.type == "cuda" and not _windowed(config):
        pack_attention(target, model)
    _try_out(target)
    target.supports_trees = not _windowed(config) and _follows_masks(target)
    target.truncate(0)
    return target


def read_causal_lm(
    checkpoint: Checkpoint, name: str, device: torch.device, dtype: torch.dtype
) -> CausalLM:
    """Read a model of transformers onto a device, ready to be run.

    Raises:
        UnsupportedModel: transformers does not know it, or runs it with remote code only.
        ModelCorrupt: weights that are missing or of another shape.
    """
    checkpoint.shards()  # says what is wrong with the files better than transformers does
    return _on(_read_model(checkpoint, _read_config(checkpoint, name), name, dtype), device)


def _read_config(checkpoint: Checkpoint, name: str) -> "PreTrainedConfig":
    import transformers
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            checkpoint.folder, trust_remote_code=False, local_files_only=True
        )
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise UnsupportedModel(
            _(
                "{name} cannot be run: transformers does not know its config.json ({error}). Code "
                "that comes with a model is never run; choose a model that transformers knows"
            ).format(name=name, error=_first_line(error))
        ) from error
    class_name = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(config.model_type)
    if class_name is None:
        raise UnsupportedModel(
            _(
                "{name} cannot be run: model_type {model_type!r} has no causal language model in "
                "transformers; choose a decoder-only language model"
            ).format(name=name, model_type=config.model_type)
        )
    if getattr(getattr(transformers, class_name), "_is_stateful", False):
        raise UnsupportedModel(
            _("{name} cannot be run: {reason}").format(name=name, reason=recurrent(class_name))
        )
    return config


def _read_model(
    checkpoint: Checkpoint, config: "PreTrainedConfig", name: str, dtype: torch.dtype
) -> CausalLM:
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    read = cast(Callable[..., Loading], AutoModelForCausalLM.from_pretrained)
    try:
        model, report = read(
            checkpoint.folder,
            config=config,
            dtype=dtype,
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
        )
    except ImportError as error:
        raise UnsupportedModel(
            _("{name} cannot be run: {error}").format(name=name, error=_first_line(error))
        ) from error
    except (SafetensorError, OSError, RuntimeError, ValueError, KeyError) as error:
        raise ModelCorrupt(
            _("the weights of {name} cannot be loaded ({error}); fetch the model again").format(
                name=name, error=_first_line(error)
            )
        ) from error
    for kind in ("missing_keys", "mismatched_keys"):
        if wrong := sorted(map(str, report[kind])):
            raise ModelCorrupt(
                _(
                    "the weights of {name} do not fit its config.json ({kind}: {wrong}); fetch "
                    "the model again"
                ).format(name=name, kind=kind.replace("_", " "), wrong=wrong[0])
            )
    return model


def pack_attention(target: HFTarget, model: CausalLM) -> bool:
    """Let a model attend with packed rows, keys and values never repeated; False if it cannot."""
    from transformers import PreTrainedModel

    from specviz.models.hf_attention import adopt

    text = [token % target.config.vocab for token in _TEXT]

    def logits() -> Tensor:
        target.truncate(0)
        return target.score(text[0], Draft.chain(text[1:]))

    def near(found: Tensor, expected: Tensor) -> bool:
        return _agree(found, expected, target.dtype)

    adopted = isinstance(model, PreTrainedModel) and adopt(model, logits, near)
    target.truncate(0)
    return adopted


def _on(model: CausalLM, device: torch.device) -> CausalLM:
    assert isinstance(model, torch.nn.Module)
    moved: CausalLM = model.to(device).eval()
    return moved


def _shape(model: CausalLM, settings: Mapping[str, object], name: str, sha: str) -> TargetConfig:
    config = model.config.get_text_config(decoder=True)
    ends = settings.get("eos_token_id", config.eos_token_id)
    heads = config.num_attention_heads
    return TargetConfig(
        name=name,
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        vocab=model.get_output_embeddings().weight.shape[0],
        context=getattr(config, "max_position_embeddings", None) or 2048,
        eos=tuple(i for i in (ends if isinstance(ends, list) else [ends]) if isinstance(i, int)),
        sha=sha,
    )


def _windowed(config: "PreTrainedConfig") -> bool:
    """Whether some layers do not see everything: one mask of ours would not fit all."""
    text = config.get_text_config(decoder=True)
    kinds = set(getattr(text, "layer_types", None) or ())
    return bool(
        kinds - {"full_attention"}
        or getattr(text, "sliding_window", None)
        or getattr(text, "attention_chunk_size", None)
    )


def _try_out(target: HFTarget) -> None:
    """Refuse a model whose logits depend on drafts that were dropped."""
    vocab = target.config.vocab
    text = [token % vocab for token in _TEXT]
    expected = target.score(text[0], Draft.chain(text[1:]))
    target.truncate(0)
    target.prefill(text[:3])
    target.score(text[0], Draft.chain(text[:2]))  # dropped by what follows
    found = target.score(text[3], Draft.chain(text[4:6]))
    target.commit((0, 1))
    found = torch.cat((found, target.score(text[6], EMPTY)))
    if not bool(torch.isfinite(expected).all()):
        raise ModelCorrupt(
            _(
                "{name} answers with NaN or Inf: its weights are damaged, or too large for this "
                "dtype; try dtype float32 or fetch the model again"
            ).format(name=target.config.name)
        )
    if not _agree(found, expected[3:], target.dtype):
        raise UnsupportedModel(
            _(
                "{name} cannot be run: after a dropped draft it says something else than before, "
                "so it keeps more than keys and values; choose another model"
            ).format(name=target.config.name)
        )


def _follows_masks(target: HFTarget) -> bool:
    """Whether a tree in one pass says what its paths say alone."""
    tree = Draft(tuple(token % target.config.vocab for token in _TREE.tokens), _TREE.parents)
    target.supports_trees = False
    apart = target.score(1, tree)
    target.supports_trees = True
    try:
        together = target.score(1, tree)
    except (TypeError, ValueError, RuntimeError, IndexError):  # no such argument, no such shape
        return False
    finally:
        target.truncate(target.length)
    return _agree(together, apart, target.dtype)


def _agree(found: Tensor, expected: Tensor, dtype: torch.dtype) -> bool:
    spread = float(expected.std()) or 1.0
    return float((found - expected).abs().max()) <= TOLERANCE[dtype] * spread


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
