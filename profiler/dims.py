"""Dimensions of a decoder-only transformer from a Hugging Face config.json, with the standard library alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .errors import ProfileError

DTYPE_BYTES = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
_REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_PER_TOKEN = ("num_experts_per_tok", "moe_k")


@dataclass(frozen=True, slots=True)
class Dims:
    """A pre-norm decoder with grouped-query attention, rotary positions and a gated feed-forward, or experts.

    fusion: an EAGLE-type head, which reads the target's hidden states and shares its embedding and output head.
    """

    name: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool = True
    experts: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    fusion: bool = False

    def layer_parameters(self) -> int:
        """Matrices of one decoder layer, every expert included."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        if not self.experts:
            return attention + 3 * self.hidden * self.intermediate
        return attention + self.hidden * self.experts + self.experts * 3 * self.hidden * self.expert_width

    def active_layer_parameters(self) -> int:
        """Matrices of one decoder layer that one token goes through."""
        if not self.experts:
            return self.layer_parameters()
        idle = (self.experts - self.experts_per_token) * 3 * self.hidden * self.expert_width
        return self.layer_parameters() - idle

    def parameters(self) -> int:
        """All matrices that the model holds itself: an EAGLE-type head has neither embedding nor output head."""
        layers = self.layers * self.layer_parameters()
        if self.fusion:
            return layers + 2 * self.hidden * self.hidden
        return layers + (1 if self.tied else 2) * self.vocab * self.hidden

    def weight_bytes(self, dtype: str) -> float:
        """Bytes of the weights; with fp8 embedding and head stay in 16 bit."""
        layers = self.layers * self.layer_parameters()
        return float(DTYPE_BYTES[dtype] * layers + max(2, DTYPE_BYTES[dtype]) * (self.parameters() - layers))

    def kv_bytes_per_token(self, dtype: str) -> int:
        """Keys and values of one token over all layers; with fp8 weights they stay in 16 bit."""
        return self.layers * 2 * self.kv_heads * self.head_dim * max(2, DTYPE_BYTES[dtype])

    def layers_flops_per_token(self) -> int:
        """Dense FLOPs of one token in the layers: 2 a parameter that it goes through."""
        return 2 * self.layers * self.active_layer_parameters()

    def at_depth(self, layers: int) -> Dims:
        """The same model with fewer layers."""
        return replace(self, layers=layers)

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def eagle_head(target: Dims) -> Dims:
    """An EAGLE-type draft: one dense decoder layer of the target's dims behind an input layer of twice the width."""
    return replace(target, name=f"EAGLE-type head for {target.name}", layers=1, experts=0, fusion=True)


def read_config(path: Path) -> Dims:
    """The dims in a config.json. Raises ProfileError with everything that is missing."""
    place = str(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProfileError(place, "file", reason, "a model is read from its config.json", "check the path") from error
    if not isinstance(data, dict):
        raise ProfileError(place, "file", "is no JSON object", "a config.json is one", "check the path")
    nested = data.get("text_config")
    inner = nested if isinstance(nested, dict) else data
    name = str(data.get("_name_or_path") or "").rstrip("/").rpartition("/")[2]
    return dims_of(inner, name or (path.resolve().parent.name if path.stem == "config" else path.stem), place)


def dims_of(data: Mapping[str, Any], name: str, place: str) -> Dims:
    """Dims from the keys of a config.json. Raises ProfileError."""
    missing = [key for key in _REQUIRED if not _is_count(data.get(key))]
    if missing:
        shown = "is missing or no whole number" if len(missing) == 1 else "are missing or no whole numbers"
        rule = "a decoder is built from them"
        raise ProfileError(place, ", ".join(missing), shown, rule, "take the model's own config.json")
    if data.get("kv_lora_rank"):
        rule = "attention is profiled as grouped heads"
        raise ProfileError(place, "kv_lora_rank", "latent attention", rule, "profile another model")
    heads, hidden = int(data["num_attention_heads"]), int(data["hidden_size"])
    kv_heads = int(data.get("num_key_value_heads") or heads)
    if heads % kv_heads:
        what = f"{kv_heads} do not divide {heads} attention heads"
        rule = "KV heads serve groups of equal size"
        raise ProfileError(place, "num_key_value_heads", what, rule, "check both numbers")
    experts = int(next((data[key] for key in _EXPERTS if data.get(key)), 0))
    per_token = int(next((data[key] for key in _PER_TOKEN if data.get(key)), 0))
    if experts and not 1 <= per_token <= experts:
        what = f"{per_token} of {experts} experts"
        rule = "a token is routed to at least 1 expert and at most all of them"
        raise ProfileError(place, "num_experts_per_tok", what, rule, "give the number that the model uses")
    return Dims(
        name=name or "model",
        hidden=hidden,
        intermediate=int(data["intermediate_size"]),
        layers=int(data["num_hidden_layers"]),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=int(data.get("head_dim") or hidden // heads),
        vocab=int(data["vocab_size"]),
        tied=bool(data.get("tie_word_embeddings", True)),
        experts=experts,
        experts_per_token=per_token,
        expert_width=int(data.get("moe_intermediate_size") or data["intermediate_size"]) if experts else 0,
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
