"""Run a plan: measure what is not in the store yet, skip what cannot fit, refine the dense part where it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import log

from .device import Device
from .errors import DeviceLostError, OutOfMemoryError
from .plan import Plan, body_point
from .point import Point
from .store import Row, Store

REFINED_GAP = 0.03  # of the logarithm: neighbours closer than that need no point between them
Progress = Callable[[int, int, Point, str], None]


def run(plan: Plan, device: Device, store: Store, progress: Progress | None = None) -> int:
    """Measure every point that the store does not hold; returns how many were measured now."""
    done = sum(store.has(point) for point in plan.points)
    total = len(plan.points) + plan.preset.refine
    measured = 0
    for point in plan.points:
        if store.has(point):
            continue
        row = _measure(plan, device, store, point)
        measured += 1
        done += 1
        if progress is not None:
            progress(done, total, point, row.status)
    for point in refinement(plan, store):
        row = _measure(plan, device, store, point)
        measured += 1
        done += 1
        if progress is not None:
            progress(done, total, point, row.status)
    return measured


def _measure(plan: Plan, device: Device, store: Store, point: Point) -> Row:
    larger = dominated_by(point, store.rows)
    if larger is not None:
        return store.add(point, "skipped", {}, {"why": f"{larger.name} did not fit into memory"})
    try:
        sample, extra = device.measure(point, plan.preset.settings)
    except OutOfMemoryError as error:
        return store.add(point, "oom", {}, {"why": str(error)})
    except DeviceLostError as error:
        store.add(point, "failed", {}, {"why": str(error)})
        raise
    except (RuntimeError, NotImplementedError) as error:
        return store.add(point, "failed", {}, {"why": " ".join(str(error).split())[:300]})
    return store.add(point, "ok", sample.document() | {"noisy": sample.is_noisy}, extra)


def dominated_by(point: Point, rows: Sequence[Row]) -> Point | None:
    """A point of the same phase that ran out of memory and needs no more than this one in any direction."""
    for row in rows:
        other = row.point
        same = row.status == "oom" and (other.phase, other.layers) == (point.phase, point.layers)
        if same and len(other.groups) == len(point.groups):
            pairs = zip(other.groups, point.groups, strict=True)
            if all(small <= large for one, two in pairs for small, large in zip(one, two, strict=True)):
                return other
    return None


def refinement(plan: Plan, store: Store) -> Iterator[Point]:
    """Rows between the two neighbours that differ most, as many as the preset allows. The store remembers them."""
    planned = set(plan.points)
    mode = next(point.mode for point in plan.points if point.phase == "body")
    layers = plan.setup.depths or (0,)
    while True:
        bodies = [row for row in store.rows if row.point.phase == "body" and row.point.layers == layers[-1]]
        refined = {row.point.rows for row in bodies if row.point not in planned and not row.point.repeat}
        pending = [point for point in _at(plan, refined, mode, layers) if not store.has(point)]
        if not pending and len(refined) < plan.preset.refine:
            rows = widest_gap({row.point.rows: _ms(row) for row in bodies if row.point.mode == mode and _ms(row)})
            pending = _at(plan, [] if rows is None else [rows], mode, layers)
        pending = [point for point in pending if not store.has(point)]
        if not pending:
            return
        yield from pending


def _at(plan: Plan, rows: Sequence[int] | set[int], mode: str, layers: Sequence[int]) -> list[Point]:
    return [body_point(plan.preset, one, mode, depth) for one in sorted(rows) for depth in layers]


def _ms(row: Row) -> float:
    return float(row.sample.get("median_ms", 0.0))


def widest_gap(times: dict[int, float]) -> int | None:
    """The middle of the two neighbouring rows whose times differ most, None where none differ by 3 %."""
    rows = sorted(times)
    gaps = [(abs(log(times[high] / times[low])), low, high) for low, high in pairwise(rows) if high - low > 1]
    gap, low, high = max(gaps, default=(0.0, 0, 0))
    return (low + high) // 2 if gap > REFINED_GAP else None
