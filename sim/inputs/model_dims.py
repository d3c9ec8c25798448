"""The dimensions of a decoder-only transformer, read from a Hugging Face config.json, and what follows from them.

Counts are of a gated (three-matrix) feed-forward and grouped-query attention without biases. `tp`, the tensor-parallel
size, gives the share of one GPU: heads, feed-forward width and vocabulary are divided, KV heads are at least 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from .errors import InputError, Problem
from .numbers import Count, TokensOrNone
from .source import Finding, Source, decode, read_bytes
from .validation import validated
from .wording import shown
from .yaml_text import parse_mapping

MAX_CONFIG_BYTES = 4_000_000
_NAMES = {
    "num_experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": ("num_experts_per_tok", "moe_k"),
    "n_shared_experts": ("n_shared_experts", "moe_num_shared_experts"),
    "first_k_dense_replace": ("first_k_dense_replace", "moe_layer_start_index"),
    "torch_dtype": ("torch_dtype", "dtype"),
}
_DTYPES_OF_16_BIT = ("bfloat16", "float16")
_EXPERTS_EVERY = (
    "decoder_sparse_step",
    "moe_layer_freq",
    "interleave_moe_layer_step",
    "moe_layer_interval",
    "expert_layer_period",
)
_ATTENTION_IN_SOME = ("full_attention_interval", "attn_layer_period", "hybrid_override_pattern")
_NoneIsZero = BeforeValidator(lambda value: 0 if value is None else value)
CountOrNone = Annotated[TokensOrNone, _NoneIsZero]


def _any_of(name: str) -> Any:
    """The key under each name that model families give it."""
    return Field(validation_alias=AliasChoices(*_NAMES[name]))


class ModelDims(BaseModel):
    """Dims under their names in config.json; other keys of that file are ignored.

    moe_intermediate_size: width of one expert, intermediate_size unless given. dense_layers: layers without experts.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True, protected_namespaces=())

    hidden_size: Count
    intermediate_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = None
    vocab_size: Count
    tie_word_embeddings: bool = True  # as transformers reads a config that does not say
    num_experts: Annotated[CountOrNone, _any_of("num_experts")] = 0
    num_experts_per_tok: Annotated[CountOrNone, _any_of("num_experts_per_tok")] = 0
    moe_intermediate_size: Count | None = None
    n_shared_experts: Annotated[CountOrNone, _any_of("n_shared_experts")] = 0
    shared_expert_intermediate_size: CountOrNone = 0
    first_k_dense_replace: Annotated[CountOrNone, _any_of("first_k_dense_replace")] = 0
    mlp_only_layers: list[int] | None = None
    torch_dtype: Annotated[str | None, _any_of("torch_dtype")] = None

    @model_validator(mode="before")
    @classmethod
    def _first_that_is_given(cls, data: Any) -> Any:
        """A key that is null stands back for another name of it."""
        names = {name for several in _NAMES.values() for name in several}
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in names}

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def key_value_heads(self) -> int:
        """KV heads of the whole model."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def dense_layers(self) -> int:
        """Layers whose feed-forward has no experts."""
        if not self.num_experts:
            return self.num_hidden_layers
        return min(self.num_hidden_layers, self.first_k_dense_replace or len(self.mlp_only_layers or []))

    @property
    def moe_layers(self) -> int:
        """Layers with experts."""
        return self.num_hidden_layers - self.dense_layers

    def query_heads(self, tp: int = 1) -> int:
        """Attention heads on one GPU."""
        return self.num_attention_heads // tp

    def kv_heads(self, tp: int = 1) -> int:
        """KV heads on one GPU: replicated where there are fewer than GPUs."""
        return max(1, self.key_value_heads // tp)

    def attention_parameters(self, tp: int = 1) -> int:
        """Q, K, V and output projections of one layer."""
        return 2 * self.hidden_size * self.head_width * (self.query_heads(tp) + self.kv_heads(tp))

    def expert_parameters(self, tp: int = 1) -> int:
        """One routed expert."""
        return 3 * self.hidden_size * ((self.moe_intermediate_size or self.intermediate_size) // tp)

    def always_read_parameters(self, tp: int = 1) -> int:
        """The layers without routed experts: attention, norms, dense feed-forwards, routers, shared experts."""
        expert_width = self.moe_intermediate_size or self.intermediate_size
        shared_width = self.n_shared_experts * expert_width + self.shared_expert_intermediate_size
        per_layer = self.attention_parameters(tp) + 2 * self.hidden_size
        dense = 3 * self.hidden_size * (self.intermediate_size // tp)
        sparse = self.hidden_size * self.num_experts + 3 * self.hidden_size * (shared_width // tp)
        layers = self.num_hidden_layers * per_layer + self.dense_layers * dense + self.moe_layers * sparse
        return layers + self.hidden_size

    def layers_parameters(self, tp: int = 1) -> int:
        """All decoder layers, every expert included."""
        return self.always_read_parameters(tp) + self.moe_layers * self.num_experts * self.expert_parameters(tp)

    def active_layers_parameters(self, tp: int = 1) -> int:
        """What one token goes through in the decoder layers."""
        routed = self.moe_layers * self.num_experts_per_tok * self.expert_parameters(tp)
        return self.always_read_parameters(tp) + routed

    def head_parameters(self, tp: int = 1) -> int:
        """The output head: the vocabulary, padded up to a multiple of the GPUs."""
        return -(-self.vocab_size // tp) * self.hidden_size

    def parameters(self, tp: int = 1) -> int:
        """All parameters; a tied head is the embedding."""
        return self.layers_parameters(tp) + (1 if self.tie_word_embeddings else 2) * self.head_parameters(tp)

    def weight_bytes(self, layer_bytes: float = 2.0, tp: int = 1) -> float:
        """Bytes of all weights: layers at `layer_bytes` a parameter, embedding and head in 16 bit."""
        heads = (1 if self.tie_word_embeddings else 2) * self.head_parameters(tp)
        return layer_bytes * self.layers_parameters(tp) + 2.0 * heads

    def kv_bytes_per_token(self, tp: int = 1) -> int:
        """K and V of one token over all layers, in 16 bit."""
        return self.num_hidden_layers * 2 * self.kv_heads(tp) * self.head_width * 2

    def flops_per_token(self, tp: int = 1) -> int:
        """Dense FLOPs of one token in the layers: 2 a parameter that it goes through. Head and attention are apart."""
        return 2 * self.active_layers_parameters(tp)

    def attention_flops_per_pair(self, tp: int = 1) -> int:
        """FLOPs over all layers of one query position attending to one key: QK and PV."""
        return 4 * self.query_heads(tp) * self.head_width * self.num_hidden_layers


class LoadedModel(NamedTuple):
    """Dims with the file they came from; `prefix`: where in it they stand (`text_config.` in multimodal models)."""

    dims: ModelDims
    source: Source
    prefix: str = ""

    def problem(self, finding: Finding) -> Problem:
        """A finding about one of the dims, placed in the file."""
        return self.source.problem(_prefixed(finding, self.prefix))


def load_model_dims(path: Path) -> LoadedModel:
    """The dims in a config.json. Raises InputError with everything that is missing, impossible or not modelled."""
    content = read_bytes(path, MAX_CONFIG_BYTES)
    source = parse_mapping(decode(content, str(path)), str(path), path.parent)
    nested = source.data.get("text_config")
    prefix = "text_config." if isinstance(nested, dict) else ""
    data: dict[str, Any] = nested if isinstance(nested, dict) else source.data
    if prefix:
        data = _with_shared(data, source.data)
    dims, findings = validated(ModelDims, data)
    findings += _not_modelled(data)
    if dims is not None:
        findings += _impossible(dims)
    problems = source.problems + [source.problem(_prefixed(finding, prefix)) for finding in findings]
    if dims is None or problems:
        raise InputError(problems)
    return LoadedModel(dims, source, prefix)


def _with_shared(nested: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """What a multimodal model says of all its parts counts where its text part says nothing."""
    dtypes = _NAMES["torch_dtype"]
    given = any(nested.get(name) is not None for name in dtypes)
    shared = ["tie_word_embeddings", *(() if given else dtypes)]
    own = {key: value for key, value in nested.items() if value is not None or key not in shared}
    return {key: whole[key] for key in shared if key in whole} | own


def dtype_problems(model: LoadedModel) -> list[Problem]:
    """Weights that are neither bf16 nor fp16 as the file says: how many bytes they take has to be given."""
    whole = model.source.data
    places = [(model.prefix, whole["text_config"] if model.prefix else whole), ("", whole)]
    rule = "weights have 16 bits unless --dtype is given"
    found = []
    for prefix, data in places:
        if data.get("quantization_config"):
            what, remedy = (
                "quantised weights of a width that is not read",
                "say `--dtype fp8` or `--dtype bf16`",
            )
            found.append(Finding(f"{prefix}quantization_config", what, rule, remedy))
    given = [(prefix + name, data[name]) for prefix, data in places for name in _NAMES["torch_dtype"] if data.get(name)]
    if given and given[0][1] not in (*_DTYPES_OF_16_BIT, "auto"):
        found.append(Finding(given[0][0], f"weights in {shown(given[0][1])}", rule, "say `--dtype bf16`"))
    return [model.source.problem(finding) for finding in dict.fromkeys(found)]


def _prefixed(finding: Finding, prefix: str) -> Finding:
    return finding._replace(field=prefix + finding.field)


def eagle_head(target: ModelDims) -> ModelDims:
    """The decoder layer of an EAGLE-type draft: one dense layer of the target's dims."""
    return target.model_copy(update={"num_hidden_layers": 1, "num_experts": 0, "num_experts_per_tok": 0})


def tensor_parallel_findings(dims: ModelDims, tp: int) -> list[Finding]:
    """What keeps a model from being divided over `tp` GPUs."""
    whole = {"num_attention_heads": dims.num_attention_heads, "intermediate_size": dims.intermediate_size}
    if dims.num_experts and dims.moe_intermediate_size:
        whole["moe_intermediate_size"] = dims.moe_intermediate_size
    remedy = "choose another tensor-parallel size"
    found = [
        Finding(name, f"{value} cannot be divided over {tp} GPUs", "each GPU takes the same share", remedy)
        for name, value in whole.items()
        if value % tp
    ]
    kv_heads = dims.key_value_heads
    if kv_heads % tp and tp % kv_heads:
        what = f"{kv_heads} KV heads cannot be shared by {tp} GPUs"
        found.append(Finding("num_key_value_heads", what, "they are divided or replicated evenly", remedy))
    return found


def _impossible(dims: ModelDims) -> list[Finding]:
    found = []
    heads, kv_heads = dims.num_attention_heads, dims.key_value_heads
    if heads % kv_heads:
        what, remedy = f"{kv_heads} do not divide {heads} attention heads", "check both numbers"
        found.append(Finding("num_key_value_heads", what, "KV heads serve groups of equal size", remedy))
    if dims.head_dim is None and dims.hidden_size % heads:
        what = f"{dims.hidden_size} is no multiple of {heads} attention heads"
        found.append(
            Finding("hidden_size", what, "without head_dim a head is hidden_size / heads", "add `head_dim: …`")
        )
    if dims.num_experts and not 1 <= dims.num_experts_per_tok <= dims.num_experts:
        what = f"{dims.num_experts_per_tok or 'none'} of {dims.num_experts} experts"
        rule = "a token is routed to at least 1 expert and at most all of them"
        found.append(Finding("num_experts_per_tok", what, rule, "give the number that the model uses"))
    return found


def _not_modelled(data: dict[str, Any]) -> list[Finding]:
    """Architectures that the formulas here would price wrongly."""
    found = []
    remedy = "measure the model, or give affine costs"
    if data.get("kv_lora_rank"):
        found.append(
            Finding("kv_lora_rank", "latent attention", "KV and attention are modelled as grouped heads", remedy)
        )
    every = "all layers after the first dense ones have experts"
    for key in _EXPERTS_EVERY:
        if data.get(key) not in (None, 1):
            found.append(Finding(key, "experts in some layers only", every, remedy))
    if data.get("moe_layer_end_index") not in (None, -1, *_last_layer(data)):
        found.append(Finding("moe_layer_end_index", "dense layers at the end", every, remedy))
    for key in _ATTENTION_IN_SOME:
        if data.get(key) not in (None, 1):
            found.append(Finding(key, "layers without attention", "every layer is a decoder layer", remedy))
    kinds = data.get("layer_types")
    if isinstance(kinds, list) and any(kind not in ("full_attention", "sliding_attention") for kind in kinds):
        found.append(Finding("layer_types", "layers without attention", "every layer is a decoder layer", remedy))
    if data.get("is_encoder_decoder") is True:
        found.append(Finding("is_encoder_decoder", "an encoder", "models are decoder-only", remedy))
    return found


def _last_layer(data: dict[str, Any]) -> tuple[int, ...]:
    layers = data.get("num_hidden_layers")
    return (layers - 1,) if isinstance(layers, int) else ()
