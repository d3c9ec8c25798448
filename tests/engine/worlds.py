"""Small random worlds for the engine: requests, acceptance, limits and costs that fit together."""

import dataclasses

import numpy as np
from hypothesis import strategies as st

from sim.acceptance.runs import AcceptanceRuns
from sim.cost.affine_costs import AffineStepCosts
from sim.engine.settings import EngineSettings
from sim.engine.sglang_limits import SglangLimits, reserved_slots
from sim.inputs.calibration import AffineCosts
from sim.workload.requests import Requests

COSTS = AffineStepCosts(
    AffineCosts(
        target_fixed_ms=5,
        target_per_token_us=30,
        target_per_kv_token_ns=50,
        draft_fixed_ms=1,
        draft_per_token_us=5,
        draft_per_kv_token_ns=3,
        sampling_fixed_ms=0.2,
        kv_update_per_token_us=1,
        host_ms=0.5,
    )
)


def make_requests(prompt, output, *, concurrency=None, arrival_ms=None, think_time_ms=0.0, hits=None):
    """Columns from plain lists."""
    count = len(prompt)
    return Requests(
        arrival_ms=np.zeros(count) if arrival_ms is None else np.array(arrival_ms, dtype=float),
        prompt_tokens=np.array(prompt, dtype=np.int64),
        output_tokens=np.array(output, dtype=np.int64),
        slice_index=np.zeros(count, dtype=np.int64),
        prefix_hit_tokens=np.zeros(count, dtype=np.int64) if hits is None else np.array(hits, dtype=np.int64),
        concurrency=concurrency,
        think_time_ms=think_time_ms,
    )


def make_runs(requests, rng, depth, alpha=0.7, ragged=False):
    """iid acceptance without the library; ragged: the drafter proposes any number of tokens, often none."""
    total = int(requests.output_tokens.sum())
    offsets = np.cumsum(requests.output_tokens) - requests.output_tokens
    accepted = np.minimum(rng.geometric(1 - alpha, total) - 1, depth).astype(np.uint8)
    if not ragged:
        return AcceptanceRuns(offsets, accepted, None, depth)
    drafted = (rng.integers(0, depth + 1, total) * (rng.random(total) < 0.6)).astype(np.uint8)
    return AcceptanceRuns(offsets, np.minimum(accepted, drafted), drafted, depth)


def make_settings(**changes):
    """Roomy vLLM limits unless changed."""
    values = {
        "style": "vllm",
        "max_num_seqs": 16,
        "max_num_batched_tokens": 2048,
        "max_num_scheduled_tokens": 2048,
        "block_size": 16,
        "num_gpu_blocks": None,
    } | changes
    k = values.get("num_speculative_tokens", 0)
    if values["style"] == "sglang":
        values["lookahead"] = reserved_slots(k) - k - 1
        values.setdefault("sglang", SglangLimits())
    values.setdefault("lookahead", k)
    return EngineSettings(**values)


@st.composite
def worlds(draw, styles=("vllm", "vllm", "vllm", "fixed_batch", "sglang", "sglang")):
    """(requests, runs, settings): tight or roomy, open or closed, with and without drafts, fixed or of any length."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 25))
    k = draw(st.sampled_from([0, 1, 3, 5]))
    prompt = rng.integers(1, draw(st.sampled_from([2, 20, 120])) + 1, count)
    output = rng.integers(1, draw(st.sampled_from([2, 12, 60])) + 1, count)
    block_size = draw(st.sampled_from([1, 4, 16, 32]))
    longest = int((prompt + output).max()) + 2 * k + 1
    max_model_len = draw(st.sampled_from([None, None, longest - k, longest + 40]))
    open_arrivals = draw(st.booleans())
    requests = make_requests(
        prompt,
        output,
        concurrency=None if open_arrivals else draw(st.integers(1, count)),
        arrival_ms=np.cumsum(rng.exponential(40.0, count)) if open_arrivals else None,
        think_time_ms=draw(st.sampled_from([0.0, 0.0, 15.0])),
        hits=np.minimum(rng.integers(0, 30, count), prompt - 1) if draw(st.booleans()) else None,
    )
    style = draw(st.sampled_from(styles))
    policy = draw(st.sampled_from(["fixed", "fixed", "schedule", "goodput", "clairvoyant"])) if k else "fixed"
    schedule = tuple(rng.integers(0, k + 1, draw(st.integers(2, 8))).tolist()) if policy == "schedule" else None
    ragged = bool(k) and draw(st.booleans())
    caching = style == "vllm" and draw(st.sampled_from([False, False, True]))
    requests = dataclasses.replace(
        requests,
        slice_index=rng.integers(0, 2, count),
        priority=rng.integers(0, 3, count),
        shared_prefix_tokens=np.minimum(rng.integers(0, 60, count), prompt) if caching else None,
        prefix_hit_tokens=np.zeros(count, dtype=np.int64) if caching else requests.prefix_hit_tokens,
    )
    fewest = -(-longest // block_size) + (3 if style == "sglang" else 1)
    chunk = block_size * draw(st.sampled_from([2, 3, 10, 100]))
    budget = draw(st.sampled_from([2 * k + 3, 40, 100, 2048]))
    settings = make_settings(
        style=style,
        max_num_seqs=draw(st.sampled_from([1, 4, 16])),
        max_num_batched_tokens=budget,
        max_num_scheduled_tokens=draw(st.sampled_from([budget, max(k + 1, budget // 2)])),
        block_size=block_size,
        num_gpu_blocks=draw(st.sampled_from([None, fewest, fewest + 3, 3 * fewest])),
        max_model_len=max_model_len,
        long_prefill_token_threshold=draw(st.sampled_from([0, 0, 2, 17])),
        adaptive_long_prefill_threshold=draw(st.booleans()),
        scheduler_reserve_full_isl=draw(st.booleans()),
        watermark=draw(st.sampled_from([0.0, 0.1])),
        num_speculative_tokens=k,
        draft_slots=draw(st.sampled_from([0, 1])) if k else 0,
        draft_schedule=schedule,
        draft_policy=policy,
        serial_drafting=not ragged,
        scheduling_policy="fcfs" if style == "sglang" else draw(st.sampled_from(["fcfs", "fcfs", "priority"])),
        prefix_caching=caching,
        drops_last_hit=draw(st.booleans()),
        pads_single_tokens=caching,
        async_scheduling=draw(st.booleans()),
        replicas=draw(st.sampled_from([1, 1, 2])),
        router=draw(st.sampled_from(["round_robin", "least_loaded"])),
        sglang=SglangLimits(
            chunked_prefill_size=draw(st.sampled_from([chunk, chunk, None])),
            max_prefill_tokens=draw(st.sampled_from([30, 200, 16384])),
            schedule_conservativeness=draw(st.sampled_from([0.0, 0.0, 0.1, 1.0])),
        ),
    )
    return requests, make_runs(requests, rng, k + 1, ragged=ragged), settings
