"""KV blocks that fit beside the weights: with a draft loaded there are fewer."""

from __future__ import annotations

from ..inputs.calibration import Calibration, MemoryBudget

NULL_BLOCKS = 1  # the engine keeps one block that holds nothing


def blocks_from_memory(memory: MemoryBudget, utilisation: float, block_size: int, with_draft: bool) -> int:
    """KV blocks = (memory * utilisation - weights - reserve) / bytes per block, target and draft together.

    The result counts the null block, as engines print it; it can be zero or negative where the weights do not fit.
    """
    weights = memory.target_weight_bytes + (memory.draft_weight_bytes if with_draft else 0.0)
    per_token = memory.kv_bytes_per_token + (memory.draft_kv_bytes_per_token if with_draft else 0.0)
    free = memory.gpu_memory_bytes * utilisation - weights - memory.reserve_bytes
    return int(free // (per_token * block_size))


def printed_blocks(calibration: Calibration, engine_value: int | None, with_draft: bool) -> int | None:
    """`num_gpu_blocks` (draft loaded) or `num_gpu_blocks_baseline`: the engine section wins over the calibration."""
    if engine_value is not None:
        return engine_value
    return calibration.num_gpu_blocks if with_draft else calibration.num_gpu_blocks_baseline
