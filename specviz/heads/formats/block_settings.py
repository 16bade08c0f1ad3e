"""Keys of config.json that the layouts of block heads share."""

from collections.abc import Mapping

from specviz.errors import ConfigError, ModelCorrupt, UnsupportedModel
from specviz.heads.dflash_config import DFlashConfig, DSparkShape, MarkovKind, View
from specviz.heads.formats.settings import write_layer
from specviz.models.llama_config import Settings, whole
from specviz.models.target import TargetConfig
from specviz.words import _

# Keys of variants that are not run here, and the values that mean "not used".
_VARIANTS: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("attention_sink_bias", (None, False)),
    ("attention_value_scale", (None, 1, 1.0)),
    ("output_multiplier", (None, 1, 1.0)),
    ("final_logit_softcapping", (None,)),
    ("input_embedding_scale", (None, 1, 1.0)),
    ("rope_is_neox_style", (None, True)),
    ("attention_mode", (None, "gqa")),
    ("conv_kernel_size", (None,)),
    ("selector_rank", (None,)),
)


class TwoPlaces:
    """Keys that stand at the top of config.json or inside `dflash_config`."""

    def __init__(self, config: Settings) -> None:
        nested = config.get("dflash_config")
        if nested is not None and not isinstance(nested, Mapping):
            raise ModelCorrupt(
                _("config.json says dflash_config = {nested!r}; an object is needed").format(
                    nested=nested
                )
            )
        self.top, self.nested = config, dict(nested or {})

    def get(self, key: str) -> object:
        """Return the value, None where it is absent.

        Raises:
            ModelCorrupt: both places have one and they differ.
        """
        outer, inner = self.top.get(key), self.nested.get(key)
        if outer is not None and inner is not None and outer != inner:
            raise ModelCorrupt(
                _(
                    "config.json says {key} = {outer!r} at its top and {inner!r} in dflash_config; "
                    "they must agree"
                ).format(key=key, outer=outer, inner=inner)
            )
        return inner if outer is None else outer

    def whole(self, key: str, default: int | None = None) -> int:
        """Return a positive whole number."""
        return whole({key: self.get(key)}, key, default)


def refuse_variants(keys: TwoPlaces) -> None:
    """Raise UnsupportedModel for a variant of the family that is not run here."""
    for key, neutral in _VARIANTS:
        value = keys.get(key)
        if not any(value == allowed and type(value) is type(allowed) for allowed in neutral):
            raise UnsupportedModel(
                _(
                    "config.json says {key} = {value!r}; block heads are run here without it "
                    "({key} may be {neutral})"
                ).format(key=key, value=value, neutral=", ".join(repr(v) for v in neutral))
            )


def mask_token(value: object) -> int:
    """Return the mask's id, which may be 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ModelCorrupt(
            _("config.json says mask_token_id = {value!r}; a token id is needed").format(
                value=value
            )
        )
    return value


def layer_outputs(value: object, target: TargetConfig) -> tuple[int, ...]:
    """Turn layer numbers, whose outputs are read (-1: the embeddings), into taps."""
    return check_taps(tuple(i + 1 for i in _ids(value, "target_layer_ids")), target)


def hidden_states(value: object, key: str, target: TargetConfig) -> tuple[int, ...]:
    """Return indices of transformers' hidden_states, checked."""
    return check_taps(_ids(value, key), target)


def default_taps(count: int, target: TargetConfig) -> tuple[int, ...]:
    """Return where z-lab's code captures `count` layers: evenly from layer 1 to the third last."""
    n = target.layers
    if count == 1:
        return (n // 2 + 1,)
    return tuple(round(1 + j * (n - 4) / (count - 1)) + 1 for j in range(count))


def check_taps(taps: tuple[int, ...], target: TargetConfig) -> tuple[int, ...]:
    """Raise for layers that the target lacks, or whose output is not well defined."""
    for tap in taps:
        if not 0 <= tap <= target.layers:
            raise ModelCorrupt(
                _(
                    "the head reads the output of layer {tap}; {name} has layers 0 to {last}. "
                    "Was it made for another model? Else give layer ids."
                ).format(tap=tap - 1, name=target.name, last=target.layers - 1)
            )
        if tap == target.layers:
            raise UnsupportedModel(
                _(
                    "the head reads the output of the last layer, {tap}: some engines train on it "
                    "before the final norm and some after. Give layer ids to say that it is after."
                ).format(tap=tap - 1)
            )
    return taps


def dspark_shape(keys: TwoPlaces) -> DSparkShape:
    """Read the sequential heads; absent keys have the defaults of the paper."""
    kind = keys.get("markov_head_type") or "vanilla"
    kinds: dict[object, MarkovKind] = {"vanilla": "vanilla", "gated": "gated", "rnn": "rnn"}
    if kind not in kinds:
        raise UnsupportedModel(
            _(
                "config.json says markov_head_type = {kind!r}; vanilla, gated and rnn are run here"
            ).format(kind=kind)
        )
    rank = keys.get("markov_rank")
    confidence = keys.get("enable_confidence_head")
    if confidence is None:
        confidence = keys.get("use_confidence_head")  # ModelOpt's name
    return DSparkShape(
        rank=0 if rank == 0 else keys.whole("markov_rank", 256),
        kind=kinds[kind],
        confidence=confidence is not False,
        confidence_sees_markov=keys.get("confidence_head_with_markov") is not False,
    )


def write_dspark(shape: DSparkShape) -> dict[str, object]:
    """Return the keys that `dspark_shape` reads."""
    return {
        "markov_rank": shape.rank,
        "markov_head_type": shape.kind,
        "enable_confidence_head": shape.confidence,
        "confidence_head_with_markov": shape.confidence_sees_markov,
    }


def windows(settings: Settings, layers: int) -> tuple[int | None, ...]:
    """Read `layer_types` and `sliding_window`: the window of each layer, None for all positions."""
    kinds = settings.get("layer_types")
    if kinds is None:
        return (None,) * layers
    allowed = ("full_attention", "sliding_attention")
    if not isinstance(kinds, list) or len(kinds) != layers or set(kinds) - set(allowed):
        raise ModelCorrupt(
            _("config.json says layer_types = {kinds!r}; {layers} of {allowed} are needed").format(
                kinds=kinds, layers=layers, allowed=", ".join(allowed)
            )
        )
    if "sliding_attention" not in kinds:
        return (None,) * layers
    if settings.get("use_sliding_window") is False:
        raise ModelCorrupt(
            _(
                "config.json says use_sliding_window = false and has sliding_attention in "
                "layer_types; they must agree"
            )
        )
    window = whole(settings, "sliding_window")
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


def write_shape(config: DFlashConfig, architecture: str) -> dict[str, object]:
    """Return what files with the layers' keys at the top say of any block head."""
    return {
        **write_layer(config.layer),
        "model_type": "qwen3",
        "architectures": [architecture],
        "num_hidden_layers": config.layers,
        "vocab_size": config.vocab,
        "block_size": config.block,
        **write_windows(config.views, config.layers),
    }


def write_windows(views: tuple[View, ...], layers: int) -> dict[str, object]:
    """Return the keys that `windows` reads."""
    sizes = {view.window for view in views} - {None}
    if len(sizes) > 1:
        raise ConfigError(
            _("layers have windows {sizes}; files hold one").format(sizes=sorted(map(str, sizes)))
        )
    if not sizes:
        return {"layer_types": ["full_attention"] * layers, "use_sliding_window": False}
    kinds = ["full_attention" if v.window is None else "sliding_attention" for v in views]
    return {"layer_types": kinds, "use_sliding_window": True, "sliding_window": sizes.pop()}


def whole_or_none(views: tuple[View, ...]) -> tuple[View, ...]:
    """Return () for layers that all see everything, as configs made in code have it."""
    return views if any(view != View() for view in views) else ()


def _ids(value: object, key: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise ModelCorrupt(
            _("config.json says {key} = {value!r}; a list of layer numbers is needed").format(
                key=key, value=value
            )
        )
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int):
            raise ModelCorrupt(
                _("config.json says {key} = {value!r}; {item!r} is no layer number").format(
                    key=key, value=value, item=item
                )
            )
    if len(set(value)) < len(value):
        raise ModelCorrupt(
            _("config.json says {key} = {value!r}; a layer is named twice").format(
                key=key, value=value
            )
        )
    return tuple(value)
