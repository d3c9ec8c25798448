"""From a preset to the points that are measured, in their order, with the memory and time that they will take."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .dims import DTYPE_BYTES
from .point import Point, batch_spec
from .presets import PRESETS, SHORT_CONTEXT, Preset
from .setup import CAPTURE_LIMIT, Setup

SENTINEL_EVERY = 20
CEILINGS = ("copy", "product")
WITHOUT_CACHE = (*CEILINGS, "head", "sampling")
LEAST_POOL_REQUESTS = 8  # of the longest, for which a paged cache has room at least; beyond, pages repeat
FIRST_PASS_QUERY = 4  # rows of a request in a first draft pass: k = 3
OVERHEAD_S = {"cpu": 0.02, "cuda": 0.2, "synthetic": 0.0}  # to build, warm and capture a point
SETUP_S = {"cpu": 3.0, "cuda": 45.0, "synthetic": 0.0}
GUESSED_GB_PER_S = {"cpu": 10.0, "cuda": 1500.0, "synthetic": 1500.0}
GUESSED_GFLOP_PER_S = {"cpu": 25.0, "cuda": 250e3, "synthetic": 250e3}
WORKSPACE_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class Plan:
    """Points in the order in which they are measured; more follow where the dense part is refined."""

    setup: Setup
    preset: Preset
    points: tuple[Point, ...]

    def phases(self) -> dict[str, int]:
        """How many points each phase has."""
        counts: dict[str, int] = {}
        for point in self.points:
            counts[point.phase] = counts.get(point.phase, 0) + 1
        return counts

    def most_requests(self) -> int:
        """Requests that any point holds at once in a cache."""
        cached = [point for point in self.points if point.phase not in WITHOUT_CACHE]
        return max(sum(group.count for group in point.groups) for point in cached)

    def seconds(self) -> float:
        """A guess of how long it takes, before anything is known of the device."""
        points = sum(point_seconds(self, point) for point in self.points)
        refined = self.preset.refine * point_seconds(self, body_point(self.preset, self.preset.rows[-1] // 2, "eager"))
        return SETUP_S[self.setup.device] + points + refined


def make_plan(setup: Setup) -> Plan:
    """Every point of the setup's preset. Memory classes from large to small, a seeded random order in each."""
    preset = PRESETS[setup.preset]
    points = list(dict.fromkeys(_points(setup, preset)))
    drawn = random.Random(setup.seed)
    again = [point for point in points if point.phase not in (*CEILINGS, "live")]
    repeated = drawn.sample(again, round(preset.repeated * len(again)))
    points += [replace(point, repeat=1) for point in repeated]
    points.sort(key=lambda point: (-_memory_class(setup, point), drawn.random()))
    return Plan(setup, preset, tuple(_with_sentinels(points, sentinel(setup, preset))))


def sentinel(setup: Setup, preset: Preset) -> Point:
    """A whole target pass that is measured again and again, so that drift is seen."""
    batch, query, context = preset.rounds[-1]
    return Point("sentinel", batch_spec(batch, query, context), _mode(setup), _depth(setup))


def body_point(preset: Preset, rows: int, mode: str, layers: int = 0) -> Point:
    """The target's layers over so many rows: one row a request, or one prompt chunk where batches end before."""
    spec = batch_spec(rows, 1, SHORT_CONTEXT) if rows <= preset.batch[-1] else batch_spec(1, rows)
    return Point("body", spec, mode, layers)


def first_pass_spec(preset: Preset, rows: int) -> str:
    """The batch of a first draft pass of so many rows: the rows of whole rounds, else one row a request or a chunk."""
    if rows > FIRST_PASS_QUERY * preset.narrow_batch[-1]:
        return batch_spec(1, rows)
    if rows % FIRST_PASS_QUERY == 0:
        return batch_spec(rows // FIRST_PASS_QUERY, FIRST_PASS_QUERY, SHORT_CONTEXT)
    return batch_spec(1, rows, SHORT_CONTEXT)


def _mode(setup: Setup) -> str:
    return "eager" if setup.device == "cpu" else "graph"


def _depth(setup: Setup) -> int:
    return setup.largest_depth() if setup.depths else 0


def _points(setup: Setup, preset: Preset) -> Iterator[Point]:
    mode, depth = _mode(setup), _depth(setup)
    for ceiling in CEILINGS:
        yield Point(ceiling, "q1")
    for layers in setup.depths or (0,):
        yield from _target_layers(setup, preset, layers)
    for rows in preset.head_rows:
        yield Point("head", batch_spec(rows, 1), mode)
    for batch in preset.sampling_batch:
        for query in preset.sampling_query:
            yield Point("sampling", batch_spec(batch, query), mode)
    for batch in preset.host_batch:
        yield Point("host", batch_spec(batch, max(preset.query[len(preset.query) // 2], 2), SHORT_CONTEXT), mode)
    for batch, query, context in preset.rounds:
        if query == 1 or setup.draft:
            yield Point("round", batch_spec(batch, query, context), mode, depth)
    for spec in preset.mixed:
        yield Point("mixed", spec, "eager", depth)
    for spec in preset.skew:
        yield Point("skew", spec, mode, depth)
    for batch, query, context, acceptance in preset.live:
        if query == 1 or setup.draft:
            yield Point("live", batch_spec(batch, query, context), mode, depth, acceptance)
    if setup.draft is not None:
        yield from _draft(preset, mode)


def _target_layers(setup: Setup, preset: Preset, layers: int) -> Iterator[Point]:
    mode = _mode(setup)
    for rows in preset.rows:
        if mode == "eager" or rows <= CAPTURE_LIMIT:
            yield body_point(preset, rows, mode, layers)
        else:
            yield body_point(preset, rows, "eager", layers)
    for rows in preset.eager_rows if mode == "graph" else ():
        yield body_point(preset, rows, "eager", layers)
    for batch in preset.batch:
        for query in preset.query:
            for context in preset.context:
                yield Point("attention", batch_spec(batch, query, context), mode, layers)
    for chunk in preset.chunk:
        for start in preset.start:
            yield Point("prefill", batch_spec(1, chunk, start), "eager", layers)
    for rows in preset.kv_rows:
        yield Point("kv_update", batch_spec(1, rows), mode, layers)


def _draft(preset: Preset, mode: str) -> Iterator[Point]:
    for rows in preset.first_rows:
        spec = first_pass_spec(preset, rows)
        yield Point("draft_first", spec, mode if rows <= CAPTURE_LIMIT else "eager")
    for batch in preset.narrow_batch:
        for context in preset.narrow_context:
            yield Point("draft_narrow", batch_spec(batch, 1, context), mode)
    for batch, drafts in preset.chains:
        yield Point("chain", batch_spec(batch, drafts + 1, SHORT_CONTEXT), mode)


def _with_sentinels(points: Iterable[Point], mark: Point) -> Iterator[Point]:
    number = 0
    for place, point in enumerate(points):
        if place % SENTINEL_EVERY == 0:
            yield replace(mark, repeat=number)
            number += 1
        yield point
    yield replace(mark, repeat=number)


def _memory_class(setup: Setup, point: Point) -> int:
    """0 below 64 MiB of tensors, then one class more for every factor of 4."""
    size, limit, number = activation_bytes(setup, point), 2.0**26, 0
    while size > limit:
        limit, number = 4 * limit, number + 1
    return number


def activation_bytes(setup: Setup, point: Point) -> float:
    """Tensors of a point beside weights and KV: hidden rows, and logits in fp32 where there are some."""
    rows, item = point.rows, max(2, DTYPE_BYTES[setup.dtype])
    width = 4 * setup.target.hidden + 3 * setup.target.intermediate
    logits = rows if point.phase in ("head", "sampling", "round", "live", "sentinel", "mixed") else 0
    return float(rows * width * item + 3.0 * logits * setup.target.vocab * 4)


def memory_bytes(plan: Plan) -> dict[str, float]:
    """What the run holds at least: weights, KV of both models, the largest activations, workspace."""
    setup, requests = plan.setup, plan.most_requests()
    tokens = plan.preset.most_tokens() * (requests if setup.device == "cpu" else min(requests, LEAST_POOL_REQUESTS))
    target, draft = setup.measured_target(), setup.draft
    return {
        "weights": target.weight_bytes(setup.dtype) + (draft.weight_bytes(setup.dtype) if draft else 0.0),
        "kv": float(tokens * target.kv_bytes_per_token(setup.dtype))
        + (float(tokens * draft.kv_bytes_per_token(setup.dtype)) if draft else 0.0),
        "activations": max(activation_bytes(setup, point) for point in plan.points),
        "workspace": WORKSPACE_BYTES / (8 if setup.device == "cpu" else 1),
    }


def point_seconds(plan: Plan, point: Point) -> float:
    """A guess of the time of one point from bytes and FLOPs at rough rates."""
    setup, settings = plan.setup, plan.preset.settings
    target, device = setup.measured_target(), setup.device
    if device == "synthetic":
        return 0.002
    weights = target.weight_bytes(setup.dtype) if point.phase in ("body", "round", "mixed", "live", "sentinel") else 0.0
    flops = target.layers_flops_per_token() * point.rows if weights else 0.0
    if point.phase == "head" or weights:
        flops += 2.0 * target.vocab * target.hidden * point.rows
    if point.phase.startswith(("draft", "chain")) and setup.draft:
        weights = setup.draft.weight_bytes(setup.dtype)
        flops = setup.draft.layers_flops_per_token() * point.rows
    kv = sum(group.count * group.context for group in point.groups) * target.kv_bytes_per_token(setup.dtype)
    call_ms = 0.05 + (weights + kv) / GUESSED_GB_PER_S[device] * 1e-6 + flops / GUESSED_GFLOP_PER_S[device] * 1e-6
    if point.phase == "live":
        return call_ms * 1e-3 * plan.preset.live_steps * (1 + point.group.query / 8)
    measured_ms = max(settings.min_ms, call_ms * settings.min_n) + settings.warm_ms + 2 * settings.warm_n * call_ms
    return OVERHEAD_S[device] + max(min(measured_ms * 1e-3, settings.max_s), 5e-3 * call_ms)
