"""specsim: a discrete-event cost simulator for speculative decoding in LLM serving.

`run_scenario` answers a scenario; `simulate` runs the engine on prepared requests. Imported on first use, so that
`import sim` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "InputError": "sim.inputs.errors",
    "OutsideCalibrationError": "sim.inputs.errors",
    "Problem": "sim.inputs.errors",
    "SpecsimError": "sim.inputs.errors",
    "load_scenario": "sim.inputs.load",
    "run_scenario": "sim.answers.run",
    "simulate": "sim.engine.loop",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
