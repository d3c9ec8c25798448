"""From an arm's `engine` section to SGLang's limits: its own words first, then the common ones, then its defaults."""

from __future__ import annotations

from typing import NamedTuple

from ..cost.memory import Blocks, kv_blocks
from ..engine.settings import EngineSettings
from ..engine.sglang_limits import SglangLimits, reserved_slots
from ..inputs.arms import Arm
from ..inputs.calibration import Calibration
from . import sglang_defaults as defaults

NO_CHUNKS = -1


class SglangArm(NamedTuple):
    """Settled limits, what was assumed for them, and what the report has to warn of."""

    settings: EngineSettings
    assumed: dict[str, float | int]
    warnings: tuple[str, ...]


def sglang_arm(arm: Arm, schedule: tuple[int, ...] | None) -> SglangArm:
    """The limits of one arm in SGLang's style. schedule: draft lengths by requests of a step, if there is one."""
    engine, assumed = arm.engine, dict[str, float | int]()
    drafts = arm.speculation.num_speculative_tokens if arm.speculation else 0
    memory = arm.calibration.memory
    gpu_bytes = memory.gpu_memory_bytes if memory else None
    page = engine.page_size or engine.block_size
    if page is None:
        page = assumed["page_size"] = defaults.PAGE_SIZE
    chunk = _chunk(arm, gpu_bytes, page, assumed)
    prefill = engine.max_prefill_tokens or defaults.MAX_PREFILL_TOKENS
    if engine.max_prefill_tokens is None and (chunk is None or chunk > prefill):
        assumed["max_prefill_tokens"] = prefill
    blocks = _blocks(arm, page, chunk or prefill, assumed)
    slots = None if blocks.number is None else (blocks.number - 1) * page
    running = engine.max_running_requests or engine.max_num_seqs
    if running is None:
        running = defaults.max_running_requests(slots, engine.max_model_len, speculates=drafts > 0)
        assumed["max_running_requests"] = running
    settings = EngineSettings(
        style="sglang",
        max_num_seqs=defaults.at_most_by_pool(running, slots),
        max_num_batched_tokens=chunk or prefill,
        max_num_scheduled_tokens=chunk or prefill,
        block_size=page,
        num_gpu_blocks=blocks.number,
        max_model_len=engine.max_model_len,
        num_speculative_tokens=drafts,
        lookahead=sglang_lookahead(drafts),
        draft_schedule=schedule,
        draft_policy=arm.speculation.policy if arm.speculation else "fixed",
        async_scheduling=_overlap(arm),
        replicas=engine.replicas,
        router=engine.router,
        sglang=SglangLimits(
            chunked_prefill_size=chunk,
            max_prefill_tokens=prefill,
            schedule_conservativeness=1.0
            if engine.schedule_conservativeness is None
            else engine.schedule_conservativeness,
        ),
    )
    return SglangArm(settings, assumed, blocks.warnings)


def sglang_lookahead(drafts: int) -> int:
    """KV slots that a row keeps beyond those of the round it runs."""
    return reserved_slots(drafts) - (1 + drafts)


def _chunk(arm: Arm, gpu_bytes: float | None, page: int, assumed: dict[str, float | int]) -> int | None:
    engine = arm.engine
    chunk = engine.chunked_prefill_size
    if chunk is None:
        chunk = engine.max_num_batched_tokens if engine.enable_chunked_prefill else NO_CHUNKS
    if chunk is None:
        chunk = defaults.chunked_prefill_size(gpu_bytes, page)
        assumed["chunked_prefill_size"] = chunk
    return None if chunk == NO_CHUNKS else chunk


def _blocks(arm: Arm, page: int, batch_tokens: int, assumed: dict[str, float | int]) -> Blocks:
    """KV pages, the padding page included; `mem_fraction_static` covers weights and KV, activations come on top."""
    engine, calibration = arm.engine, arm.calibration
    given = engine.num_gpu_blocks if engine.max_total_tokens is None else engine.max_total_tokens // page + 1
    utilisation = engine.mem_fraction_static
    if calibration.memory is not None and (utilisation is not None or engine.gpu_memory_utilization is None):
        if utilisation is None:
            method = arm.speculation.method if arm.speculation else None
            utilisation = defaults.mem_fraction_static(calibration.memory.gpu_memory_bytes, batch_tokens, method=method)
            assumed["mem_fraction_static"] = utilisation
        calibration = _without_reserve(calibration)
    return kv_blocks(
        calibration,
        given,
        engine.num_gpu_blocks_baseline,
        page,
        utilisation or engine.gpu_memory_utilization or 1.0,
        with_draft=arm.speculation is not None,
    )


def _without_reserve(calibration: Calibration) -> Calibration:
    assert calibration.memory is not None
    return calibration.model_copy(update={"memory": calibration.memory.model_copy(update={"reserve_bytes": 0.0})})


def _overlap(arm: Arm) -> bool:
    if arm.engine.disable_overlap_schedule is not None:
        return not arm.engine.disable_overlap_schedule
    if arm.engine.async_scheduling is not None:
        return arm.engine.async_scheduling
    return arm.calibration.async_scheduling
