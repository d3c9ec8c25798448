"""What an analytic calibration has to say about itself: what it leaves out, and how it is to be read."""

from __future__ import annotations

from ..inputs.model_dims import ModelDims
from .devices import Device


def not_modelled(target: ModelDims) -> list[str]:
    """Effects that a measured table would hold and this one does not."""
    left_out = [
        "Tile stairs of matrix products: the dense part is smooth, so the best k is not tied to a tile edge.",
        "Attention of a draft's first pass: taken from its narrow passes, whose requests have one row each.",
        "Padding of draft passes to captured sizes, and what the host does between them.",
        "Biases, sliding windows, feed-forwards without a gate, KV in 8 bit, tile shapes of attention over few rows.",
    ]
    if target.num_experts:
        left_out.append(
            "Skewed routing: experts are taken as drawn uniformly and independently, so E (1 - (1 - k/E)^M) of E are "
            "read; products of few rows per expert run at the same share of the peak as large ones."
        )
    return left_out


def notes(device: Device, tensor_parallel: int, draft: object) -> list[str]:
    """How the numbers are to be read."""
    said = [
        "All numbers are of one GPU.",
        "async_scheduling is not stated: true on a GPU, so that the host hides behind the device.",
    ]
    if device.unsure:
        said.append(f"Unsure, {device.unsure}.")
    if tensor_parallel > 1:
        said.append(
            f"Tensor-parallel size {tensor_parallel}: two all-reduces a layer as rings, one for the embedding, and a "
            "gather of the logits."
        )
    if draft is not None:
        said.append("The draft is in 16 bit and divided over the same GPUs as the target.")
    if isinstance(draft, str):
        said.append(
            "EAGLE-type head: one decoder layer of the target's dims behind a layer of 2 hidden sizes to 1, which is "
            "replicated; embedding and head are the target's."
        )
    return said
