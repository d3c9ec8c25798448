"""What one results folder is about: models, dtype, device and preset. It is the header of its points."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from .dims import DTYPE_BYTES, Dims
from .errors import ProfileError

DEVICES = ("cpu", "cuda", "synthetic")
CAPTURE_LIMIT = 512
CAPTURE_SIZES = (1, 2, 4, *range(8, 256, 8), *range(256, CAPTURE_LIMIT + 1, 16))  # vLLM's default ladder


@dataclass(frozen=True, slots=True)
class Setup:
    """depths: two numbers of layers at which the target is measured instead of as a whole; () for the whole model.

    backend: attention back end, `auto` for the first that works. threads: of the CPU. noise: of the synthetic device.
    """

    target: Dims
    draft: Dims | None
    dtype: str = "fp32"
    device: str = "cpu"
    backend: str = "auto"
    preset: str = "smoke"
    threads: int = 1
    seed: int = 1
    depths: tuple[int, ...] = ()
    noise: float = 0.0

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "target": self.target.document(),
            "draft": self.draft.document() if self.draft else None,
            "dtype": self.dtype,
            "device": self.device,
            "backend": self.backend,
            "preset": self.preset,
            "threads": self.threads,
            "seed": self.seed,
            "depths": list(self.depths),
            "noise": self.noise,
        }

    def digest(self) -> str:
        """Content of what is measured: the preset is left out, so that a larger one goes on where a smaller ended."""
        content = {key: value for key, value in self.document().items() if key != "preset"}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def largest_depth(self) -> int:
        """Layers of the target that are held in memory."""
        return max(self.depths, default=self.target.layers)

    def measured_target(self) -> Dims:
        """The target as it is held in memory."""
        return self.target.at_depth(self.largest_depth())


def setup_of(document: dict[str, Any]) -> Setup:
    """A setup from the header of a points file."""
    draft = document["draft"]
    rest = {key: document[key] for key in document if key not in ("target", "draft", "depths")}
    return Setup(
        target=Dims(**document["target"]),
        draft=Dims(**draft) if draft else None,
        depths=tuple(document["depths"]),
        **rest,
    )


def check_setup(setup: Setup) -> None:
    """Raise ProfileError for what cannot be measured whatever the machine is."""
    place = "specsim profile"
    if setup.dtype not in DTYPE_BYTES:
        rule, remedy = f"known are {', '.join(DTYPE_BYTES)}", "name one of them"
        raise ProfileError(place, "--dtype", f"unknown dtype {setup.dtype!r}", rule, remedy)
    if setup.dtype == "fp8" and setup.device == "cpu":
        rule = "fp8 products need a GPU of compute capability 8.9 or more"
        raise ProfileError(place, "--dtype", "fp8 on a CPU", rule, "use fp32 or bf16")
    if setup.depths:
        low, *others = setup.depths
        if len(others) != 1 or not 1 <= low < others[0] <= setup.target.layers:
            what = f"depths {', '.join(map(str, setup.depths))}"
            rule = f"two rising depths up to the target's {setup.target.layers} layers give the slope of a layer"
            raise ProfileError(place, "--depths", what, rule, "give them like 4,8")
