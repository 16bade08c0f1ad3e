"""The layout of z-lab (DFlash) and its relatives: SpecForge and ModelOpt, for DFlash and DSpark."""

from pathlib import Path

from specviz.errors import ConfigError, ModelCorrupt, UnsupportedModel
from specviz.heads.base import Head
from specviz.heads.checkpoint import Checkpoint, write_folder
from specviz.heads.dflash_config import DFlashConfig, View
from specviz.heads.formats.block_settings import (
    TwoPlaces,
    default_taps,
    dspark_shape,
    layer_outputs,
    mask_token,
    refuse_variants,
    whole_or_none,
    windows,
    write_dspark,
    write_shape,
)
from specviz.heads.formats.block_tensors import (
    drop_confidence,
    file_tensors,
    head_tensors,
    make_head,
    require_block,
)
from specviz.heads.formats.settings import check_vocab, read_layer
from specviz.models.llama_config import Settings, whole
from specviz.models.target import TargetConfig
from specviz.words import _

_ARCHITECTURES = ("DFlashDraftModel", "DSparkDraftModel", "DFlash2DraftModel", "DominoDraftModel")


def matches(config: Settings, names: frozenset[str]) -> bool:
    """Whether this is a block head with its keys in `dflash_config`, or told by its tensors."""
    if config.get("speculators_model_type") is not None:
        return False
    architectures = config.get("architectures")
    named = isinstance(architectures, list) and bool(set(architectures) & set(_ARCHITECTURES))
    bare = {name.removeprefix("model.") for name in names}
    return named or "dflash_config" in config or "hidden_norm.weight" in bare


def read(checkpoint: Checkpoint, target: TargetConfig, taps: tuple[int, ...] | None) -> Head:
    """Read a DFlash or DSpark head of z-lab, SpecForge or ModelOpt."""
    config = checkpoint.config
    keys = TwoPlaces(config)
    _refuse_others(config, keys)
    refuse_variants(keys)
    check_vocab(config, target)
    _check_depth(config, target, given=taps is not None)
    tensors = head_tensors(checkpoint)
    spark = _is_dspark(keys, frozenset(tensors))
    layers = whole(config, "num_hidden_layers")
    shape = DFlashConfig(
        layer=read_layer({"model_type": "qwen3"} | dict(config), frozenset(tensors)),
        layers=layers,
        vocab=target.vocab,
        draft_vocab=target.vocab,
        block=keys.whole("block_size"),
        mask_token=mask_token(keys.get("mask_token_id")),
        taps=taps or _taps(keys, target, tensors["fc.weight"].shape[-1] // target.hidden),
        views=_views(config, keys, layers),
        anchor_predicts=spark or keys.get("shift_label") is True,
        dspark=dspark_shape(keys) if spark else None,
    )
    return make_head(drop_confidence(shape, tensors), tensors, target)


def write(head: Head, folder: Path) -> None:
    """Write z-lab's layout for DFlash, SpecForge's for DSpark.

    Raises:
        ConfigError: the head has an output head or a view of the context that the layout cannot
            say; the speculators layout can.
    """
    head = require_block(head, "z-lab")
    c, spark = head.config, head.config.dspark
    if head.lm_head is not None or head.embed_tokens is not None:
        raise ConfigError(
            _(
                "z-lab files use the target's embedding and output head, and this head has its "
                "own; write it in the speculators layout"
            )
        )
    nested: dict[str, object] = {
        "mask_token_id": c.mask_token,
        "target_layer_ids": [tap - 1 for tap in c.taps],
    }
    if spark is not None:
        nested |= {"projector_type": "dspark", "attention_mode": "gqa"} | write_dspark(spark)
    elif c.anchor_predicts:
        nested["shift_label"] = True
    nested |= _causal(c)
    name = "DFlashDraftModel" if spark is None else "DSparkDraftModel"
    config: dict[str, object] = write_shape(c, name) | {"dflash_config": nested}
    if _views(config, TwoPlaces(config), c.layers) != c.views:
        raise ConfigError(
            _(
                "z-lab files cannot say who sees whom in this head ({views}); write it in the "
                "speculators layout"
            ).format(views=c.views)
        )
    write_folder(folder, config, file_tensors(head))


def _refuse_others(config: Settings, keys: TwoPlaces) -> None:
    architectures, projector = config.get("architectures"), keys.get("projector_type")
    for name in ("DFlash2DraftModel", "DominoDraftModel"):
        if isinstance(architectures, list) and name in architectures:
            raise UnsupportedModel(
                _(
                    "architectures names {name}, a successor of DFlash that is not run here; "
                    "DFlashDraftModel and DSparkDraftModel are"
                ).format(name=name)
            )
    if projector not in (None, "dflash", "dspark"):
        raise UnsupportedModel(
            _(
                "config.json says projector_type = {projector!r}; dflash and dspark are run here"
            ).format(projector=projector)
        )


def _check_depth(config: Settings, target: TargetConfig, *, given: bool) -> None:
    made_for = config.get("num_target_layers")
    if made_for is not None and made_for != target.layers and not given:
        raise ModelCorrupt(
            _(
                "config.json says num_target_layers = {made_for!r}; {name} has {layers}. The head "
                "was made for another model; layer ids override this."
            ).format(made_for=made_for, name=target.name, layers=target.layers)
        )


def _is_dspark(keys: TwoPlaces, names: frozenset[str]) -> bool:
    """Flat files say it only in `projector_type` or by their tensors."""
    told = keys.get("projector_type") == "dspark" or bool(keys.get("markov_rank"))
    architectures = keys.top.get("architectures")
    named = isinstance(architectures, list) and "DSparkDraftModel" in architectures
    return told or named or any(name.startswith("markov_head.") for name in names)


def _taps(keys: TwoPlaces, target: TargetConfig, count: int) -> tuple[int, ...]:
    ids = keys.get("target_layer_ids")
    return default_taps(count, target) if ids is None else layer_outputs(ids, target)


def _views(config: Settings, keys: TwoPlaces, layers: int) -> tuple[View, ...]:
    """Who sees whom; implementations differ where layers slide and nothing says `causal`.

    z-lab's own code slides without being causal; SpecForge, told by `attention_mode`, trains
    sliding layers causally. A key that is present decides for all layers, as in vLLM.
    """
    sizes = windows(config, layers)
    if keys.get("use_swa") is True:
        sizes = (keys.whole("swa_window_size"),) * layers
    causal = config.get("is_causal")
    causal = keys.nested.get("causal") if causal is None else causal
    if causal is not None and not isinstance(causal, bool):
        raise ModelCorrupt(
            _("config.json says causal = {causal!r}; true or false is needed").format(causal=causal)
        )
    slides = keys.get("attention_mode") is not None
    return whole_or_none(
        tuple(
            View(window=size, causal=slides and size is not None if causal is None else causal)
            for size in sizes
        )
    )


def _causal(config: DFlashConfig) -> dict[str, object]:
    """Say `causal` only where all layers agree, for it is read as one flag for all of them."""
    flags = {view.causal for view in config.views}
    return {"causal": flags.pop()} if len(flags) == 1 else {}
