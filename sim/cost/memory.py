"""KV blocks that fit beside the weights: with a draft loaded there are fewer."""

from __future__ import annotations

from typing import NamedTuple

from ..inputs.calibration import Calibration, MemoryBudget

UNLIMITED_KV = "the calibration knows no memory and num_gpu_blocks is not given: KV is unlimited"
DRAFT_MEMORY_NOT_MODELLED = (
    "draft memory not modelled: only one of num_gpu_blocks and num_gpu_blocks_baseline is known and the other cannot "
    "be derived, so every arm has the same KV blocks"
)


class Blocks(NamedTuple):
    """KV blocks of one replica as an engine prints them (None: unlimited), and what has to be said about them."""

    number: int | None
    warnings: tuple[str, ...] = ()


def blocks_from_memory(memory: MemoryBudget, utilisation: float, block_size: int, with_draft: bool) -> int:
    """KV blocks = (memory * utilisation - weights - reserve) / bytes per block, target and draft together.

    It can be zero or negative where the weights do not fit.
    """
    free = memory.gpu_memory_bytes * utilisation - _weights(memory, with_draft) - memory.reserve_bytes
    return int(free // _bytes_per_block(memory, block_size, with_draft))


def kv_blocks(
    calibration: Calibration,
    num_gpu_blocks: int | None,
    num_gpu_blocks_baseline: int | None,
    block_size: int,
    utilisation: float,
    *,
    with_draft: bool,
) -> Blocks:
    """Blocks with a draft loaded or without one.

    The scenario's numbers win over the calibration's; a missing one is derived from the other and the bytes that the
    draft takes, else from the memory as a whole.
    """
    loaded = num_gpu_blocks if num_gpu_blocks is not None else calibration.num_gpu_blocks
    plain = num_gpu_blocks_baseline if num_gpu_blocks_baseline is not None else calibration.num_gpu_blocks_baseline
    given, other = (loaded, plain) if with_draft else (plain, loaded)
    if given is not None:
        return Blocks(given)
    memory = calibration.memory
    if other is None:
        if memory is None:
            return Blocks(None, (UNLIMITED_KV,))
        return Blocks(blocks_from_memory(memory, utilisation, block_size, with_draft))
    if memory is None:
        return Blocks(other, (DRAFT_MEMORY_NOT_MODELLED,))
    kv_bytes = other * _bytes_per_block(memory, block_size, not with_draft)
    kv_bytes += _weights(memory, not with_draft) - _weights(memory, with_draft)
    return Blocks(int(kv_bytes // _bytes_per_block(memory, block_size, with_draft)))


def _weights(memory: MemoryBudget, with_draft: bool) -> float:
    return memory.target_weight_bytes + (memory.draft_weight_bytes if with_draft else 0.0)


def _bytes_per_block(memory: MemoryBudget, block_size: int, with_draft: bool) -> float:
    return block_size * (memory.kv_bytes_per_token + (memory.draft_kv_bytes_per_token if with_draft else 0.0))
