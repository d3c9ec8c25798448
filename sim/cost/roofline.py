"""Milliseconds of one model's kernels from bytes and FLOPs: the physics behind analytic calibrations.

A kernel group takes ((bytes / BW)^p + (flops / F)^p)^(1/p), at the rates that kernels reach, and a gap per kernel. With
tensor parallelism every number is of one GPU, and two all-reduces a layer come on top.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..inputs.model_dims import ModelDims
from .assumptions import Assumptions
from .devices import Device

Dtype = str
LAYER_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0}
DENSE_KERNELS = 8  # of a layer in a fused engine: 2 norms, QKV, rotary, output, gate-up, activation, down
MOE_KERNELS = 13  # norms, QKV, rotary, output; router, top-k, 2 of sorting, 2 expert products, activation, sum, scale


def combined_ms(read_ms: float, compute_ms: float, exponent: float) -> float:
    """The p-norm of reading and computing: between their maximum and their sum."""
    longer, shorter = max(read_ms, compute_ms), min(read_ms, compute_ms)
    if longer <= 0:
        return 0.0
    return float(longer * (1.0 + (shorter / longer) ** exponent) ** (1.0 / exponent))


def expected_experts(experts: int, per_token: int, rows: float) -> float:
    """Distinct experts that `rows` tokens are routed to, were routing uniform and independent: E (1 - (1 - k/E)^M)."""
    return float(experts * (1.0 - (1.0 - per_token / experts) ** rows)) if experts else 0.0


@dataclass(frozen=True, slots=True)
class ModelRoofline:
    """One model on one GPU of `tp`. layer_bytes: of a layer's parameter. fusion: EAGLE's input layer, 2 hidden to 1.

    The fusion layer is replicated on each GPU. Embedding, head, KV and attention are in 16 bit whatever the dtype.
    """

    dims: ModelDims
    device: Device
    tp: int = 1
    dtype: Dtype = "bf16"
    fusion: bool = False
    assumed: Assumptions = field(default_factory=Assumptions)

    @property
    def bandwidth_bytes_per_ms(self) -> float:
        """Memory bandwidth that kernels reach."""
        return self.device.bandwidth_gb_per_s * 1e6 * self.assumed.bandwidth_efficiency

    @property
    def peak_tflop_per_s(self) -> float:
        """Peak of the layers' products, of the datasheet."""
        fp8 = self.device.fp8_tflop_per_s
        return fp8 if self.dtype == "fp8" and fp8 is not None else self.device.bf16_tflop_per_s

    @property
    def fusion_parameters(self) -> int:
        """EAGLE's input layer."""
        return 2 * self.dims.hidden_size**2 if self.fusion else 0

    @property
    def layers_bytes(self) -> float:
        """Weights of all layers, every expert included."""
        return LAYER_BYTES[self.dtype] * (self.dims.layers_parameters(self.tp) + self.fusion_parameters)

    @property
    def flops_per_row(self) -> float:
        """FLOPs of one row through the layers."""
        return self.dims.flops_per_token(self.tp) + 2.0 * self.fusion_parameters

    def dense_ms(self, rows: float) -> float:
        """Layers without attention, in a CUDA graph: weights that the rows touch are read once; and all-reduces."""
        dims, tp = self.dims, self.tp
        experts = expected_experts(dims.num_experts, dims.num_experts_per_tok, rows)
        touched = dims.always_read_parameters(tp) + dims.moe_layers * experts * dims.expert_parameters(tp)
        read_bytes = LAYER_BYTES[self.dtype] * (touched + self.fusion_parameters)
        ms = self._product_ms(read_bytes, rows * self.flops_per_row, self.peak_tflop_per_s)
        return ms + self._gaps_ms(self.dense_kernels) + (2 * dims.num_hidden_layers + 1) * self._all_reduce_ms(rows)

    def piecewise_ms(self, rows: float) -> float:
        """The same in a graph between attention layers: each layer launches one graph, KV update and attention."""
        launches_us = self.assumed.graph_launch_us + 2 * self.assumed.eager_launch_us
        return max(self.dense_ms(rows), self.dims.num_hidden_layers * launches_us * 1e-3)

    def eager_ms(self, rows: float) -> float:
        """The same without graphs: never faster than its kernels are launched."""
        kernels = self.dense_kernels + (2 + 2 * (self.tp > 1)) * self.dims.num_hidden_layers
        return max(self.dense_ms(rows), kernels * self.assumed.eager_launch_us * 1e-3)

    @property
    def dense_kernels(self) -> int:
        """Kernels of all layers but KV update and attention."""
        return DENSE_KERNELS * self.dims.dense_layers + MOE_KERNELS * self.dims.moe_layers + int(self.fusion)

    def head_ms(self, rows: float) -> float:
        """The output head over the rows that need logits, gathered from all GPUs."""
        parameters = self.dims.head_parameters(self.tp)
        ms = self._product_ms(2.0 * parameters, 2.0 * rows * parameters, self.device.bf16_tflop_per_s)
        return ms + self._gaps_ms(1) + self._link_ms(2.0 * rows * self.dims.vocab_size)

    def decode_attention_ms(self, batch: float, query: float, context: float) -> float:
        """`query` positions of each request over its `context` computed tokens and, causally, themselves."""
        read_bytes = batch * (context + query) * self.dims.kv_bytes_per_token(self.tp)
        return self._attention_ms(read_bytes, batch * query * (context + (query + 1) / 2))

    def prefill_attention_ms(self, chunk: float, start: float) -> float:
        """One prompt chunk after `start` computed tokens: K and V are read once, causal pairs are computed."""
        return self.decode_attention_ms(1, chunk, start)

    def kv_update_ms(self, rows: float) -> float:
        """K and V of the rows, read and written once."""
        moved = 2.0 * rows * self.dims.kv_bytes_per_token(self.tp)
        return moved / self.bandwidth_bytes_per_ms + self._gaps_ms(self.dims.num_hidden_layers)

    def sampling_ms(self, rows: float, bytes_per_logit: float) -> float:
        """Over whole rows of logits on every GPU."""
        return rows * self.dims.vocab_size * bytes_per_logit / self.bandwidth_bytes_per_ms

    def narrow_pass_ms(self, batch: float, context: float) -> float:
        """One pass of a draft over one row a request, with logits for each."""
        attention_ms = self.decode_attention_ms(batch, 1, context)
        return self.dense_ms(batch) + attention_ms + self.kv_update_ms(batch) + self._proposal_ms(batch)

    def first_pass_ms(self, rows: float) -> float:
        """A draft's pass over all rows of a step; attention is left out, as the rows do not tell the contexts."""
        logit_rows = min(max(1.0, rows / self.assumed.draft_rows_per_logit_row), self.assumed.draft_logit_rows_limit)
        return self.dense_ms(rows) + self.kv_update_ms(rows) + self._proposal_ms(logit_rows)

    def _proposal_ms(self, rows: float) -> float:
        return self.head_ms(rows) + self.sampling_ms(rows, self.assumed.draft_sampling_bytes_per_logit)

    def _product_ms(self, read_bytes: float, flops: float, peak_tflop_per_s: float) -> float:
        compute_ms = flops / (peak_tflop_per_s * 1e9 * self.assumed.flops_efficiency)
        return combined_ms(read_bytes / self.bandwidth_bytes_per_ms, compute_ms, self.assumed.roofline_exponent)

    def _attention_ms(self, read_bytes: float, pairs: float) -> float:
        reached = self.device.bf16_tflop_per_s * 1e9 * self.assumed.attention_flops_efficiency
        compute_ms = pairs * self.dims.attention_flops_per_pair(self.tp) / reached
        ms = combined_ms(read_bytes / self.bandwidth_bytes_per_ms, compute_ms, self.assumed.roofline_exponent)
        return ms + self._gaps_ms(self.dims.num_hidden_layers)

    def _gaps_ms(self, kernels: int) -> float:
        return kernels * self.assumed.graph_kernel_gap_us * 1e-3

    def _all_reduce_ms(self, rows: float) -> float:
        """A ring over the hidden states in 16 bit: each GPU sends 2 (tp - 1) / tp of them."""
        return 2.0 * self._link_ms(2.0 * rows * self.dims.hidden_size) - self._latency_ms()

    def _link_ms(self, whole_bytes: float) -> float:
        """Gathering so many bytes that are spread over all GPUs: each one sends (tp - 1) / tp of them."""
        if self.tp == 1:
            return 0.0
        reached = self.device.link_gb_per_s * 1e6 * self.assumed.bandwidth_efficiency
        return whole_bytes * (self.tp - 1) / self.tp / reached + self._latency_ms()

    def _latency_ms(self) -> float:
        return self.assumed.all_reduce_latency_us * 1e-3 if self.tp > 1 else 0.0
