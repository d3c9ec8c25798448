"""The arms of a comparison: one scenario resolved into the configurations that are simulated."""

from __future__ import annotations

from dataclasses import dataclass

from .arm_overrides import arm_data
from .calibration import Calibration
from .load import LoadedScenario
from .scenario import Engine, Scenario, Slice, Speculation


@dataclass(frozen=True, slots=True)
class Arm:
    """One configuration. `speculation` is None where nothing drafts: absent, or `num_speculative_tokens: 0`."""

    name: str
    speculation: Speculation | None
    engine: Engine
    calibration: Calibration
    slices: tuple[Slice, ...]


def resolve_arms(loaded: LoadedScenario) -> list[Arm]:
    """The arms in order: baseline, speculative if there is speculation, then the ones under `arms`."""
    arms = []
    for name, (data, _) in arm_data(loaded.data).items():
        scenario = Scenario.model_validate(data)
        speculation = scenario.speculation
        if speculation is not None and speculation.num_speculative_tokens == 0:
            speculation = None
        calibration = loaded.calibrations.get(f"arms.{name}.calibration", loaded.calibrations["calibration"])
        arms.append(Arm(name, speculation, scenario.engine, calibration, tuple(scenario.workload.slices)))
    return arms
