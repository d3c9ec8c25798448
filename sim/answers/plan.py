"""What will be simulated: every arm with its settled limits, compiled costs and what has to be said about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..acceptance.dashboard import DASHBOARD_WARNING
from ..cost.compile import compile_costs
from ..cost.step_costs import StepCosts
from ..cost.table_costs import TableStepCosts
from ..engine.core import idle_scheduler
from ..engine.loop import Pool
from ..engine.settings import EngineSettings
from ..inputs.acceptance_models import AcceptanceLength, Rate
from ..inputs.arms import Arm, PoolArm, pool_arms, resolve_arms
from ..inputs.calibration import LookupDraft, RoundCosts, TableCosts
from ..inputs.errors import InputError, Problem
from ..inputs.load import LoadedScenario
from ..inputs.scenario import LOOKUP_METHODS, Slice
from ..workload.trace_rows import trace_warnings
from .acceptance_inputs import acceptance_problems, acceptance_warnings, without_memory
from .limits import ArmLimits, arm_limits

Assumed = dict[str, float | int]

NO_RESTART_EFFECT = (
    "the acceptance model has no memory along the output: the fall of first-position acceptance with longer drafts "
    "(restart effect) is absent"
)


WHOLE_ROUNDS = (
    "the calibration holds whole rounds: drafting, sampling and host are booked as verification, and context costs "
    "nothing"
)


MODEL_COSTS_FOR_LOOKUP = (
    "calibration {} prices the passes of a draft model; a look-up is booked as one such pass a step, take a "
    "calibration of an n-gram drafter"
)

SPECULATIVE = "speculative"
FREE_CONTEXT = "where it is missing, long contexts cost nothing"


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """One arm, ready to run in any process."""

    name: str
    slices: tuple[Slice, ...]
    pools: tuple[Pool, ...]
    calibration: str

    @property
    def _leading(self) -> Pool:
        return max(self.pools, key=lambda pool: pool.settings.num_speculative_tokens)

    @property
    def settings(self) -> EngineSettings:
        """The limits of its one pool, or of the pool with the longest drafts."""
        return self._leading.settings

    @property
    def costs(self) -> StepCosts:
        """The costs of the same pool."""
        return self._leading.costs

    @property
    def capture_unit(self) -> str | None:
        """What sizes of CUDA graphs count, tokens or requests; None where the costs know no FULL graphs."""
        return self.costs.capture_unit if isinstance(self.costs, TableStepCosts) else None

    def passes(self, drafts: int) -> int:
        """Serial passes of the drafter that propose so many tokens."""
        return drafts if self.settings.serial_drafting else min(drafts, 1)

    @property
    def has_one_length(self) -> bool:
        """Whether every round drafts the same number of tokens: no pools of several lengths, schedule or policy."""
        lengths = {pool.settings.num_speculative_tokens for pool in self.pools}
        return len(lengths) == 1 and not any(pool.settings.varies for pool in self.pools)

    @property
    def drafts(self) -> int:
        """Draft tokens per round, 0 without speculation."""
        return self.settings.num_speculative_tokens


@dataclass(frozen=True, slots=True)
class RunPlan:
    """All arms of a scenario, and warnings known before the run.

    assumed: engine limits that the scenario leaves out, with the defaults taken; of_arm: those in which an arm differs.
    A limit whose default depends on whether the arm speculates is in neither: the scenario cannot say it for both.
    """

    arms: tuple[ArmPlan, ...]
    warnings: tuple[str, ...]
    assumed: Assumed
    of_arm: dict[str, Assumed]


def plan_run(loaded: LoadedScenario) -> RunPlan:
    """Settle every arm. Raises InputError where a request of a fixed length can never run."""
    arms = resolve_arms(loaded)
    problems = acceptance_problems(arms, loaded)
    if problems:
        raise InputError(problems)
    by_pool = [[(one, arm_limits(one.arm, loaded.scenario)) for one in pool_arms(arm)] for arm in arms]
    problems = [problem for pools in by_pool for one, own in pools for problem in _impossible(one, own, loaded)]
    if problems:
        raise InputError(dict.fromkeys(problems))
    plans = tuple(_arm_plan(arm, pools) for arm, pools in zip(arms, by_pool, strict=True))
    limits = [replace(pools[0][1], warnings=_pool_warnings(pools)) for pools in by_pool]
    of_arm = _assumed_by_arms(arms, limits)
    by_speculation = set(of_arm.get(SPECULATIVE, {}))
    of_trace = trace_warnings(loaded.scenario.workload, loaded.base_dir.resolve(), loaded.problem)
    return RunPlan(
        arms=plans,
        warnings=tuple(dict.fromkeys([*_warnings(arms, limits, of_arm, loaded), *of_trace])),
        assumed=_without(limits[0].assumed, by_speculation),
        of_arm={name: _without(own, by_speculation) for name, own in of_arm.items() if name != SPECULATIVE},
    )


def _pool_warnings(pools: Sequence[tuple[PoolArm, ArmLimits]]) -> tuple[str, ...]:
    return tuple(warning for _, limits in pools for warning in limits.warnings)


def _arm_plan(arm: Arm, pools: Sequence[tuple[PoolArm, ArmLimits]]) -> ArmPlan:
    own = tuple(_pool(one, limits.settings) for one, limits in pools)
    return ArmPlan(arm.name, arm.slices, own, arm.calibration.name)


def _pool(one: PoolArm, settings: EngineSettings) -> Pool:
    costs = compile_costs(
        one.arm.calibration,
        settings.num_speculative_tokens,
        settings.draft_lengths(),
        draft_extend=settings.style == "sglang",
    )
    return Pool(settings, costs, one.slices)


def _no_such_drafter(pool: PoolArm, settings: EngineSettings) -> tuple[str, str, str] | None:
    """A table calibration prices one kind of drafting: passes of a model, or look-ups."""
    costs, speculation = pool.arm.calibration.costs, pool.arm.speculation
    if not settings.num_speculative_tokens or not isinstance(costs, TableCosts) or speculation is None:
        return None
    name = pool.arm.calibration.name
    if costs.draft is None:
        remedy = "take a calibration with one, or remove speculation"
        return f"{name} knows no drafter", "drafting is never free", remedy
    if isinstance(costs.draft, LookupDraft) == settings.serial_drafting:
        kind = "look-ups" if isinstance(costs.draft, LookupDraft) else "passes of a model"
        rule = f"method {speculation.method} drafts otherwise"
        return f"{name} has the drafting costs of {kind}", rule, "take a calibration of that method"
    return None


def _impossible(pool: PoolArm, limits: ArmLimits, loaded: LoadedScenario) -> list[Problem]:
    """Requests of a fixed length that no schedule can serve."""
    arm, settings = pool.arm, limits.settings
    if words := _no_such_drafter(pool, settings):
        what, rule, remedy = words
        own = f"arms.{arm.name}.calibration"
        field = own if own in loaded.calibrations else "calibration"
        return [loaded.problem(field, f"arm {arm.name}: {what}", rule, remedy)]
    if settings.num_gpu_blocks is not None and settings.num_gpu_blocks < 2:
        what = f"arm {arm.name}: {settings.num_gpu_blocks} KV blocks are left beside the weights"
        key = "mem_fraction_static" if settings.style == "sglang" else "gpu_memory_utilization"
        rule, remedy = "at least 2 are needed", f"raise {key} or take a larger GPU"
        return [loaded.problem(f"engine.{key}", what, rule, remedy)]
    scheduler = idle_scheduler(settings)
    problems = []
    for index, part in enumerate(arm.slices):
        if pool.slices is not None and index not in pool.slices:
            continue
        if isinstance(part.prompt_tokens, int) and isinstance(part.output_tokens, int):
            end = min(part.prompt_tokens + part.output_tokens, settings.longest)
            if not scheduler.fits(part.prompt_tokens - min(part.prefix_hit_tokens, part.prompt_tokens - 1), end):
                field = f"workload.slices.{index}.prompt_tokens"
                what = (
                    f"a request of {part.prompt_tokens} + {part.output_tokens} tokens can never run in arm {arm.name}"
                )
                rule = f"it must fit into {settings.num_gpu_blocks} KV blocks of {settings.block_size} tokens"
                if not settings.enable_chunked_prefill:
                    rule = "without chunked prefill it must fit into the token budget at once, after a preemption too"
                problems.append(loaded.problem(field, what, rule, "shorten it or give the engine more room"))
    return problems


def _assumed_by_arms(arms: Sequence[Arm], limits: Sequence[ArmLimits]) -> dict[str, Assumed]:
    """What arms assume that the scenario's own engine does not, or otherwise."""
    common = limits[0].assumed
    differing = {
        arm.name: {name: value for name, value in one.assumed.items() if common.get(name) != value}
        for arm, one in zip(arms, limits, strict=True)
    }
    return {name: assumed for name, assumed in differing.items() if assumed}


def _without(assumed: Assumed, names: set[str]) -> Assumed:
    return {name: value for name, value in assumed.items() if name not in names}


def _assumption(whose: str, name: str, value: float | int, arm: Arm) -> str:
    return f"{whose}engine.{name} not given: {value:g} assumed, the default of style {arm.engine.style}"


def _warnings(
    arms: Sequence[Arm], limits: Sequence[ArmLimits], of_arm: dict[str, Assumed], loaded: LoadedScenario
) -> list[str]:
    warnings = [warning for one in limits for warning in one.warnings]
    warnings += [_assumption("", name, value, arms[0]) for name, value in limits[0].assumed.items()]
    for arm in arms:
        own = of_arm.get(arm.name, {})
        warnings += [_assumption(f"arm {arm.name}: ", name, value, arm) for name, value in own.items()]
    drafting = [arm for arm in arms if arm.speculation is not None]
    models = [part.acceptance for arm in drafting for part in arm.slices if part.acceptance is not None]
    if any(isinstance(model, Rate | AcceptanceLength) for model in models):
        warnings.append(DASHBOARD_WARNING)
    if any(without_memory(model, loaded.base_dir.resolve()) for model in models):
        warnings.append(NO_RESTART_EFFECT)
    warnings += acceptance_warnings(arms, loaded)
    if any(isinstance(arm.calibration.costs, RoundCosts) for arm in drafting):
        warnings.append(WHOLE_ROUNDS)
    for arm in drafting:
        memory = arm.calibration.memory
        if arm.speculation and arm.speculation.method in LOOKUP_METHODS and memory and memory.draft_weight_bytes:
            warnings.append(MODEL_COSTS_FOR_LOOKUP.format(arm.calibration.name))
    for arm in arms:
        costs = arm.calibration.costs
        if isinstance(costs, TableCosts) and (costs.decode_attention is None or costs.prefill_attention is None):
            warnings.append(
                f"calibration {arm.calibration.name} has no table of attention for every pass: {FREE_CONTEXT}"
            )
    for calibration in (arm.calibration for arm in arms):
        if calibration.kind != "affine" and calibration.heldout is None:
            warnings.append(f"calibration {calibration.name} is {calibration.kind}; its held-out error is not known")
    return warnings
