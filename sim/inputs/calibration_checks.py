"""Rules across the keys of a calibration: axes, sizes of tables, missing columns, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from .calibration import (
    AffineCosts,
    Calibration,
    ChainDraft,
    Curve,
    DenseColumns,
    FileAffineCosts,
    Graphs,
    MemoryBudget,
    ParallelDraft,
    RoundCosts,
    TableCosts,
    WholeStep,
)
from .checks import costs_nothing
from .plausible_times import size_findings, time_findings
from .source import Finding
from .validation import MOST_FINDINGS
from .wording import listed

_COSTS: dict[str, TypeAdapter[Any]] = {
    "affine": TypeAdapter(FileAffineCosts),
    "table": TypeAdapter(TableCosts),
    "rounds": TypeAdapter(RoundCosts),
}
_MEMORY = TypeAdapter(MemoryBudget)
_GRID_AXES = {
    "decode_attention": ("batch", "query", "context"),
    "prefill_attention": ("chunk", "start"),
    "sampling": ("batch", "query"),
}


def calibration_findings(data: Mapping[str, Any]) -> list[Finding]:
    """What is wrong between the keys of a calibration file; parts with mistakes of their own are passed over."""
    raw = data.get("costs")
    form = raw.get("form") if isinstance(raw, dict) else None
    costs = _valid(_COSTS[form], raw) if isinstance(form, str) and form in _COSTS else None
    memory = _valid(_MEMORY, data.get("memory"))
    return list(islice(_findings(costs, memory, data), MOST_FINDINGS))


def other_model_findings(calibrations: Mapping[str, Calibration]) -> Iterator[Finding]:
    """Calibrations of a lossless comparison that are of another target than the first that names one.

    calibrations: by the path of the reference, `calibration` or `arms.NAME.calibration`. The former is first.
    """
    fields = sorted(calibrations, key=lambda field: field != "calibration")
    targets = [(field, models.target) for field in fields if (models := calibrations[field].models) is not None]
    if not targets:
        return
    first, expected = targets[0]
    whose = "the scenario's" if first == "calibration" else f"that of {first.split('.')[1]}"
    for field, own in targets[1:]:
        if own.casefold() != expected.casefold():
            what = f"{calibrations[field].name} is a calibration of {own}, {whose} is of {expected}"
            rule = "under lossless another model does not give the same outputs"
            yield Finding(field, what, rule, "take a calibration of the same target or set quality.contract: lossy")


def _valid(adapter: TypeAdapter[Any], raw: Any) -> Any:
    try:
        return adapter.validate_python(raw)
    except ValidationError:
        return None


def _findings(
    costs: AffineCosts | TableCosts | RoundCosts | None, memory: MemoryBudget | None, data: Mapping[str, Any]
) -> Iterator[Finding]:
    if memory is not None:
        yield from _memory(memory)
    yield from size_findings(memory, costs.roofline if isinstance(costs, TableCosts) else None)
    if costs is None:
        return
    if isinstance(costs, AffineCosts) and costs_nothing(costs):
        rule = "a step of the target takes time"
        yield Finding("costs", "cost nothing", rule, "give target_fixed_ms or target_per_token_us")
        return
    of_shape = list(_tables(costs) if isinstance(costs, TableCosts) else _rounds(costs))
    yield from of_shape
    if not of_shape:  # times are judged point by point, which needs tables that are whole
        yield from time_findings(costs, memory, data)


def _memory(memory: MemoryBudget) -> Iterator[Finding]:
    weights = memory.target_weight_bytes + memory.draft_weight_bytes
    if weights + memory.reserve_bytes >= memory.gpu_memory_bytes:
        what = f"weights of {weights:.4g} bytes and {memory.reserve_bytes:.4g} in reserve"
        rule = f"together they fit into gpu_memory_bytes of {memory.gpu_memory_bytes:.4g}"
        yield Finding("memory.target_weight_bytes", what, rule, "give the bytes of one GPU: check the units")


def _tables(costs: TableCosts) -> Iterator[Finding]:
    for path, curve in _curves(costs):
        yield from _grid(path, curve, ("rows",))
    for name, axes in _GRID_AXES.items():
        grid = getattr(costs, name)
        if grid is not None:
            yield from _grid(f"costs.{name}", grid, axes)
    if isinstance(costs.draft, ChainDraft):
        yield from _grid("costs.draft.narrow", costs.draft.narrow, ("batch", "context"))
    yield from _columns(costs.dense, costs.graphs)
    if costs.graphs is not None:
        yield from _graphs(costs.graphs)
    yield from _whole_steps(costs.whole_steps, costs.dense)


def _curves(costs: TableCosts) -> Iterator[tuple[str, Curve]]:
    """Every table over rows alone, with its path in the file."""
    named = {f"dense.{mode}": getattr(costs.dense, mode) for mode in DenseColumns.model_fields}
    named |= {name: getattr(costs, name) for name in ("head", "kv_update", "host")}
    if isinstance(costs.draft, ChainDraft):
        named["draft.first"] = costs.draft.first
    if isinstance(costs.draft, ParallelDraft):
        named["draft.one_pass"] = costs.draft.one_pass
    yield from ((f"costs.{name}", curve) for name, curve in named.items() if curve is not None)


def _grid(path: str, part: BaseModel, axes: Sequence[str]) -> Iterator[Finding]:
    """The axes rise, and there is a time for each of their points."""
    for axis in axes:
        yield from _rising(f"{path}.{axis}", getattr(part, axis))
    times: Any = getattr(part, "ms")  # noqa: B009 (the models share no class that has it)
    whole = list(_lengths(f"{path}.ms", times, [(axis, len(getattr(part, axis))) for axis in axes]))
    yield from whole
    if not whole and not _any(times):
        yield Finding(f"{path}.ms", "is all zero", "a phase that costs nothing has no table", "remove it or measure it")


def _rising(path: str, axis: Sequence[int]) -> Iterator[Finding]:
    for place in range(1, len(axis)):
        if axis[place] <= axis[place - 1]:
            what = f"{axis[place]} after {axis[place - 1]}"
            rule = "the points of an axis rise"
            yield Finding(f"{path}.{place}", what, rule, "sort the points with their times, and give each once")


def _lengths(path: str, times: Sequence[Any], axes: Sequence[tuple[str, int]]) -> Iterator[Finding]:
    (name, points), inner = axes[0], axes[1:]
    if len(times) != points:
        what = f"{len(times)} entries for {points} points of {name}"
        yield Finding(
            path, what, f"one entry for each point of {name}", "add what is missing or remove what is too much"
        )
    for place, entry in enumerate(times) if inner else ():
        yield from _lengths(f"{path}.{place}", entry, inner)


def _any(times: Any) -> bool:
    return any(map(_any, times)) if isinstance(times, list) else bool(times)


def _columns(dense: DenseColumns, graphs: Graphs | None) -> Iterator[Finding]:
    if dense.full is None and dense.piecewise is None and dense.eager is None:
        remedy = "add full, piecewise or eager"
        yield Finding("costs.dense", "holds no column", "a target pass costs time in some graph mode", remedy)
    elif graphs is not None and dense.eager is None:
        limit = graphs.limit or max(graphs.capture_sizes)
        what = "has no eager column"
        rule = f"a step above the captured {limit} {graphs.unit} runs eagerly and has no cost then"
        yield Finding("costs.dense", what, rule, "add dense.eager or remove graphs")
    elif graphs is not None and dense.full is None and dense.piecewise is None:
        rule = "a captured step runs in full or piecewise mode"
        yield Finding("costs.dense", "has no captured column", rule, "add dense.full or remove graphs")


def _graphs(graphs: Graphs) -> Iterator[Finding]:
    yield from _rising("costs.graphs.capture_sizes", graphs.capture_sizes)
    if graphs.limit is not None:
        beyond = [size for size in graphs.capture_sizes if size > graphs.limit]
        if beyond:
            what = f"{listed(map(str, beyond))} with a limit of {graphs.limit}"
            rule = "nothing above the limit is captured"
            yield Finding("costs.graphs.capture_sizes", what, rule, "raise the limit or remove the sizes")


def _whole_steps(steps: Sequence[WholeStep], dense: DenseColumns) -> Iterator[Finding]:
    columns = [curve for curve in (dense.full, dense.piecewise, dense.eager) if curve is not None]
    most = max((curve.rows[-1] for curve in columns), default=0)
    for place, step in enumerate(steps):
        rows = step.batch * step.query
        if columns and rows > most:
            what, rule = f"{rows} rows", f"the dense tables reach {most}"
            yield Finding(f"costs.whole_steps.{place}.batch", what, rule, "hold steps inside the tables against them")


def _rounds(costs: AffineCosts | RoundCosts) -> Iterator[Finding]:
    if not isinstance(costs, RoundCosts):
        return
    yield from _rising("costs.batch", costs.batch)
    yield from _rising("costs.drafts", costs.drafts)
    yield from _lengths("costs.ms", costs.ms, [("batch", len(costs.batch)), ("drafts", len(costs.drafts))])
    if costs.drafts[0] != 0:
        remedy = "add the times without drafts as the first column"
        yield Finding("costs.drafts.0", f"starts at {costs.drafts[0]}", "the baseline drafts 0 tokens", remedy)
    for place, row in enumerate(costs.ms):
        if row[0] is None:
            rule = "the first column is the baseline, from which a row is read"
            yield Finding(f"costs.ms.{place}.0", "is null", rule, "measure it or leave the row out")
        if sum(cell is not None for cell in row) < 2:
            rule = "a row needs two cells, to read others off between them"
            yield Finding(f"costs.ms.{place}", "has fewer than two cells", rule, "measure more or leave the row out")
