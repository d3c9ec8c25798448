"""From an arm's `engine` section to the limits that the scheduler uses: defaults filled in, KV blocks settled."""

from __future__ import annotations

from dataclasses import dataclass

from ..cost.memory import kv_blocks
from ..engine.policies import schedule_lookup
from ..engine.settings import EngineSettings
from ..inputs.arms import Arm
from ..inputs.scenario import LOOKUP_METHODS, Closed, Scenario, Speculation
from .sglang_settings import sglang_arm

# What the engines take when a limit is left out (vLLM's server on a data-centre GPU; papers run one full batch).
STYLE_DEFAULTS = {
    "vllm": {"max_num_seqs": 256, "max_num_batched_tokens": 8192, "block_size": 16, "gpu_memory_utilization": 0.9},
    "fixed_batch": {"max_num_batched_tokens": 8192, "block_size": 16, "gpu_memory_utilization": 0.9},
}

# Rows that a draft model adds to its own input for each scheduled request; the others ride on the target's states.
DRAFT_SLOTS = {"draft_model": 1}

# Drafters that see the target's hidden states: a block hit in the cache does not bring those of its last tokens.
NEED_HIDDEN_STATES = ("eagle", "eagle3", "mtp")


@dataclass(frozen=True, slots=True)
class ArmLimits:
    """Settled limits, what was assumed for them, and what the report has to warn of."""

    settings: EngineSettings
    assumed: dict[str, float | int]
    warnings: tuple[str, ...]


def arm_limits(arm: Arm, scenario: Scenario) -> ArmLimits:
    """The limits of one arm. Speculation costs it KV blocks, lookahead slots and budget."""
    engine, speculation = arm.engine, arm.speculation
    if engine.style == "sglang":
        return ArmLimits(*sglang_arm(arm, _schedule(speculation)))
    assumed: dict[str, float | int] = {}

    def setting(name: str) -> float | int:
        value: float | int | None = getattr(engine, name)
        if value is None:
            value = assumed[name] = _default(name, engine.style, scenario)
        return value

    drafts = speculation.num_speculative_tokens if speculation else 0
    method = speculation.method if speculation and drafts else None
    looks_up = method in LOOKUP_METHODS
    block_size = int(setting("block_size"))
    blocks = kv_blocks(
        arm.calibration,
        engine.num_gpu_blocks,
        engine.num_gpu_blocks_baseline,
        block_size,
        float(setting("gpu_memory_utilization")) if arm.calibration.memory else 1.0,
        with_draft=drafts > 0 and not looks_up,
    )
    batched = int(setting("max_num_batched_tokens"))
    settings = EngineSettings(
        style=engine.style,
        max_num_seqs=int(setting("max_num_seqs")),
        max_num_batched_tokens=batched,
        max_num_scheduled_tokens=engine.max_num_scheduled_tokens or batched,
        block_size=block_size,
        num_gpu_blocks=blocks.number,
        max_model_len=engine.max_model_len,
        enable_chunked_prefill=engine.enable_chunked_prefill,
        long_prefill_token_threshold=engine.long_prefill_token_threshold,
        adaptive_long_prefill_threshold=engine.adaptive_long_prefill_threshold,
        scheduler_reserve_full_isl=engine.scheduler_reserve_full_isl,
        watermark=engine.watermark,
        num_speculative_tokens=drafts,
        lookahead=0 if looks_up else drafts,
        draft_slots=DRAFT_SLOTS.get(method, 0) if method else 0,
        draft_schedule=_schedule(speculation) if drafts else None,
        draft_policy=speculation.policy if speculation and drafts else "fixed",
        serial_drafting=not looks_up,
        scheduling_policy=engine.scheduling_policy,
        prefix_caching=engine.caches_prefixes,
        drops_last_hit=method in NEED_HIDDEN_STATES,
        pads_single_tokens=engine.caches_prefixes,
        async_scheduling=_async_scheduling(arm),
        replicas=engine.replicas,
        router=engine.router,
    )
    return ArmLimits(settings, assumed, blocks.warnings)


def _schedule(speculation: Speculation | None) -> tuple[int, ...] | None:
    ranges = speculation.num_speculative_tokens_per_batch_size if speculation else None
    return schedule_lookup(ranges, speculation.num_speculative_tokens) if speculation and ranges else None


def _default(name: str, style: str, scenario: Scenario) -> float | int:
    if style == "fixed_batch" and name == "max_num_seqs":
        arrivals = scenario.workload.arrivals
        return arrivals.concurrency if isinstance(arrivals, Closed) else 256
    return STYLE_DEFAULTS[style][name]


def _async_scheduling(arm: Arm) -> bool:
    if arm.engine.async_scheduling is not None:
        return arm.engine.async_scheduling
    return arm.engine.style == "vllm" and arm.calibration.async_scheduling
