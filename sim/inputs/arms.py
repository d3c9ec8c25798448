"""The arms of a comparison: one scenario resolved into the configurations that are simulated."""

from __future__ import annotations

from dataclasses import dataclass, replace

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


@dataclass(frozen=True, slots=True)
class PoolArm:
    """An arm as one of its pools runs it. slices: the places of those that it serves; None: all."""

    arm: Arm
    slices: frozenset[int] | None


def pool_arms(arm: Arm) -> list[PoolArm]:
    """The pools of an arm, each with its replicas and draft length; one for everything where none are given."""
    if arm.engine.pools is None:
        return [PoolArm(arm, None)]
    places = {part.name: place for place, part in enumerate(arm.slices)}
    pools = []
    for pool in arm.engine.pools:
        drafts, speculation = pool.num_speculative_tokens, arm.speculation
        if drafts is not None and speculation is not None:
            speculation = speculation.model_copy(update={"num_speculative_tokens": drafts}) if drafts else None
        engine = arm.engine.model_copy(update={"replicas": pool.replicas, "pools": None})
        own = replace(arm, speculation=speculation, engine=engine)
        pools.append(PoolArm(own, frozenset(places[name] for name in pool.slices)))
    return pools


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
