"""Matrix products in the dtype that is profiled: plain ones, and fp8 where the card has it."""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F  # noqa: N812 (torch's own convention)

FP8_MAX = 448.0  # of float8_e4m3fn
INITIAL_SD = 0.02
DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.bfloat16,  # of activations
}


class Linear(Protocol):
    """rows times a weight of [out, in]."""

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out]."""


class PlainLinear:
    """A product in the weight's own dtype."""

    def __init__(self, weight: torch.Tensor) -> None:
        self.weight = weight

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """See `Linear`."""
        return F.linear(rows, self.weight)


class Fp8Linear:
    """Weights in e4m3 with one scale, activations scaled as they come."""

    def __init__(self, weight: torch.Tensor) -> None:
        self._scale = (weight.abs().max().float() / FP8_MAX).reshape(1)
        self._weight = (weight.float() / self._scale).to(torch.float8_e4m3fn)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """See `Linear`."""
        scale = (rows.abs().max().float() / FP8_MAX).clamp(min=1e-12).reshape(1)
        scaled = (rows.float() / scale).clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn)
        out: torch.Tensor = torch._scaled_mm(
            scaled, self._weight.t(), scale_a=scale, scale_b=self._scale, out_dtype=rows.dtype
        )
        return out


class RandomWeights:
    """Draws weights on the device in their own dtype; never zeros, which run faster than a real model does."""

    def __init__(self, dtype: str, device: str, seed: int) -> None:
        self.dtype, self.device = DTYPES[dtype], device
        self._fp8 = dtype == "fp8"
        self._generator = torch.Generator(device=device).manual_seed(seed)

    def tensor(self, *shape: int) -> torch.Tensor:
        """Normal numbers of standard deviation 0.02."""
        empty = torch.empty(*shape, dtype=self.dtype, device=self.device)
        return empty.normal_(0.0, INITIAL_SD, generator=self._generator)

    def linear(self, outputs: int, inputs: int) -> Linear:
        """A product of the layers."""
        weight = self.tensor(outputs, inputs)
        return Fp8Linear(weight) if self._fp8 else PlainLinear(weight)

    def head(self, outputs: int, inputs: int) -> PlainLinear:
        """Embedding and output head: never fp8."""
        return PlainLinear(self.tensor(outputs, inputs))
