"""What SGLang takes when a limit is left out; some of it depends on the GPU's memory.

Sizes in MiB as in its server arguments; a GPU of unknown memory counts as one of 80 GB.
"""

from __future__ import annotations

from ..engine.settings import UNLIMITED

RUNNING_WITH_SPECULATION = 48
FEWEST_RUNNING, MOST_RUNNING = 2048, 4096
MAX_PREFILL_TOKENS = 16384
PAGE_SIZE = 1
_MIB = 1 << 20
_USUAL_GPU_MIB = 80 * 1024
# (memory below, chunked_prefill_size, largest batch with a CUDA graph), for fewer than four GPUs
_BY_MEMORY = ((20, 2048, 8), (35, 2048, 24), (60, 4096, 32), (160, 8192, 256))
_BY_MEMORY_ABOVE = (16384, 512)


def _sizes(gpu_memory_bytes: float | None) -> tuple[int, int]:
    mib = gpu_memory_bytes / _MIB if gpu_memory_bytes else _USUAL_GPU_MIB
    for below_gib, chunk, graphs in _BY_MEMORY:
        if mib < below_gib * 1024:
            return chunk, graphs
    return _BY_MEMORY_ABOVE


def chunked_prefill_size(gpu_memory_bytes: float | None, page_size: int) -> int:
    """Prompt tokens of a prefill batch, in whole pages."""
    return max(1, _sizes(gpu_memory_bytes)[0] // page_size) * page_size


def mem_fraction_static(gpu_memory_bytes: float, batch_tokens: int, *, method: str | None) -> float:
    """Share of GPU memory for weights and KV: the rest is kept for activations, graphs, runtime and drafting.

    batch_tokens: of a prefill batch. method: of speculation, None without.
    """
    mib = gpu_memory_bytes / _MIB
    reserved = 512 + 1.5 * max(batch_tokens, 2048) + 2 * _sizes(gpu_memory_bytes)[1] + 128
    if mib > 60 * 1024:
        reserved = max(reserved, 10 * 1024)
    if method is not None:
        reserved += (6 if method == "draft_model" else 2) * 1024
    return round((mib - reserved) / mib, 3)


def max_running_requests(kv_slots: int | None, max_model_len: int | None, *, speculates: bool) -> int:
    """Residents: 48 with speculation; without, 512 for each full context that the pool holds, but 2048 to 4096."""
    if speculates:
        return RUNNING_WITH_SPECULATION
    if kv_slots is None or max_model_len is None:
        return FEWEST_RUNNING
    return max(min(kv_slots * 512 // max_model_len, MOST_RUNNING), FEWEST_RUNNING)


def at_most_by_pool(requests: int, kv_slots: int | None) -> int:
    """The engine never lets more run than half of its KV slots, whatever it was told."""
    return min(requests, max(1, (UNLIMITED if kv_slots is None else kv_slots) // 2))
