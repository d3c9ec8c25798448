"""Run a plan: measure what is not in the store yet, skip what cannot fit, refine the dense part where it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from math import log
from statistics import median

from .device import Device
from .errors import DeviceLostError, OutOfMemoryError
from .plan import Plan, body_point
from .point import Point
from .store import Row, Store

DRIFT = 0.03  # of a sentinel from the median of all
AGAIN = 2  # the pass whose time stands for a point that was measured while the device had drifted
NOT_AGAIN = ("copy", "product", "live")
MOST_AGAIN = 0.25
REFINED_GAP = 0.03  # of the logarithm: neighbours closer than that need no point between them
Progress = Callable[[int, int, Point, str], None]


def run(plan: Plan, device: Device, store: Store, progress: Progress | None = None) -> int:
    """Measure every point that the store does not hold; returns how many were measured now."""
    total = len(plan.points) + plan.preset.refine
    before = len(store.rows)
    for point in chain(plan.points, refinement(plan, store), drifted(plan, store)):
        if not store.has(point):
            row = _measure(plan, device, store, point)
            if progress is not None:
                progress(len(store.rows), max(total, len(store.rows)), point, row.status)
    return len(store.rows) - before


def drifted(plan: Plan, store: Store) -> Iterator[Point]:
    """Points between sentinels that are off the others by more than 3 %, to be measured again; a quarter at most.

    Where more are off there is no steady state to go back to: the range of the sentinels tells.
    """
    marks = {row.point: _ms(row) for row in store.rows if row.point.phase == "sentinel" and row.status == "ok"}
    if not marks:
        return
    usual, off, window = median(marks.values()), [], [False]
    for point in plan.points:
        if point.phase == "sentinel":
            window.append(abs(marks.get(point, usual) / usual - 1) > DRIFT)
        elif point.phase not in NOT_AGAIN and not point.repeat:
            off.append((point, len(window)))
    again = [replace(point, repeat=AGAIN) for point, place in off if any(window[place - 1 : place + 1])]
    if len(again) <= MOST_AGAIN * len(plan.points):
        yield from again


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
