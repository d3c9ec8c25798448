"""`specsim calibrate list` and `show`: what is inside calibrations, as JSON values."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..cost.compile import compile_costs
from ..cost.memory import blocks_from_memory
from ..cost.step_costs import GraphMode
from ..cost.table_costs import TableStepCosts
from ..inputs.calibration import AffineCosts, Calibration, LookupDraft, RoundCosts, TableCosts
from ..inputs.catalog import calibration_names
from ..inputs.load_calibration import OpenedCalibration, open_calibration
from ..inputs.source import Source
from .limits import STYLE_DEFAULTS
from .next_stair import captured_sizes
from .step_parts import step_parts

LOOK_SCHEMA = "specsim-calibration-look/1"
COMMAND = "specsim calibrate show"
SHOWN_BATCHES = (1, 8, 32, 128)
SHOWN_DRAFTS = (0, 3)
SHOWN_CONTEXT_TOKENS = 1024
PLOT_POINTS = 512
UNBOUNDED_ROWS = 1024  # where a calibration names no end


def listed_calibrations() -> list[dict[str, Any]]:
    """One entry for each shipped calibration, by name."""
    return [_identity(_opened(name)) for name in calibration_names()]


def shown_calibration(reference: str) -> dict[str, Any]:
    """A shipped name or a file taken apart. Raises InputError."""
    opened = _opened(reference)
    stored, used = opened.stored, opened.used
    return {
        "schema": LOOK_SCHEMA,
        **_identity(opened),
        "file": str(opened.path),
        "sha256": used.sha256,
        "provenance": stored.provenance.model_dump(mode="json"),
        "hardware": stored.hardware.model_dump(mode="json"),
        "models": stored.models.model_dump(mode="json"),
        "async_scheduling": used.async_scheduling,
        "max_decode_batch": used.fitted_range.max_decode_batch if used.fitted_range else None,
        "steps": _steps(used),
        "additivity": _additivity(used),
        "heldout_folds": _folds(used),
        "memory": _memory(used),
        "curve": _curve(used),
    }


def _opened(reference: str) -> OpenedCalibration:
    """The command line stands in for a scenario that refers to the calibration."""
    return open_calibration(reference, Source(COMMAND, Path(), {}, {}, {}))


def _identity(opened: OpenedCalibration) -> dict[str, Any]:
    stored = opened.stored
    return {
        "name": stored.name,
        "kind": stored.kind,
        "target": stored.models.target,
        "draft": stored.models.draft,
        "gpu": stored.hardware.gpu,
        "gpus_per_replica": stored.hardware.gpus_per_replica,
        "form": stored.costs.form,
        "heldout": stored.heldout.model_dump(mode="json", exclude={"folds"}) if stored.heldout else None,
    }


def knows_drafting(calibration: Calibration) -> bool:
    """Whether drafting costs anything in this calibration."""
    costs = calibration.costs
    if isinstance(costs, AffineCosts):
        return bool(costs.draft_fixed_ms or costs.draft_per_token_us or costs.draft_per_kv_token_ns)
    return max(costs.drafts) > 0 if isinstance(costs, RoundCosts) else costs.draft is not None


def _steps(calibration: Calibration) -> list[dict[str, Any]]:
    """Steps at a few batches, without drafts and with: a table of rounds shows its own cells."""
    costs = calibration.costs
    if isinstance(costs, RoundCosts):
        batches, lengths = tuple(costs.batch), tuple(costs.drafts)
    else:
        batches, lengths = SHOWN_BATCHES, SHOWN_DRAFTS if knows_drafting(calibration) else SHOWN_DRAFTS[:1]
    steps = []
    for drafts in lengths:
        compiled = compile_costs(calibration, drafts)
        for batch in batches:
            parts = step_parts(
                compiled,
                batch,
                drafts,
                SHOWN_CONTEXT_TOKENS,
                drafts,
                asynchronous=calibration.async_scheduling,
            )
            steps.append(parts.document())
    return steps


def _additivity(calibration: Calibration) -> dict[str, Any] | None:
    """Each whole step against the sum of its terms, error in percent of the whole, positive where the sum is more.

    A whole step of `query` rows a request verifies query - 1 drafts, and drafts as many where a model drafts.
    """
    costs = calibration.costs
    if not isinstance(costs, TableCosts) or not costs.whole_steps:
        return None
    drafts_anew = costs.draft is not None and not isinstance(costs.draft, LookupDraft)
    rows = []
    for whole in costs.whole_steps:
        drafts = whole.query - 1
        compiled = compile_costs(calibration, drafts)
        passes = drafts if drafts_anew else 0
        asynchronous = calibration.async_scheduling
        parts = step_parts(compiled, whole.batch, drafts, whole.context, passes, asynchronous=asynchronous)
        error = 100 * (parts.step_ms / whole.ms - 1)
        rows.append({**whole.model_dump(mode="json"), "sum_ms": parts.step_ms, "error_percent": error})
    errors = [row["error_percent"] for row in rows]
    return {"steps": rows, "median_error_percent": statistics.median(errors)}


def _folds(calibration: Calibration) -> dict[str, Any]:
    """Errors by the way in which cells were held out; {} where the file does not tell them apart."""
    heldout = calibration.heldout
    return {} if heldout is None else heldout.model_dump(mode="json")["folds"] or {}


def _memory(calibration: Calibration) -> dict[str, Any] | None:
    memory = calibration.memory
    if memory is None:
        return None
    utilisation, block_size = (
        STYLE_DEFAULTS["vllm"]["gpu_memory_utilization"],
        int(STYLE_DEFAULTS["vllm"]["block_size"]),
    )
    blocks = {
        name: blocks_from_memory(memory, utilisation, block_size, with_draft)
        for name, with_draft in (("num_gpu_blocks_baseline", False), ("num_gpu_blocks", True))
    }
    used = {"gpu_memory_utilization": utilisation, "block_size": block_size}
    return memory.model_dump(mode="json") | used | blocks


def _curve(calibration: Calibration) -> dict[str, Any]:
    """Step time against rows, one row a request and no drafts: its stairs, and the sizes that are captured."""
    costs = compile_costs(calibration, 0)
    last = _last_rows(calibration)
    rows = _spread(last)
    steps = [
        step_parts(costs, row, 0, SHOWN_CONTEXT_TOKENS, 0, asynchronous=calibration.async_scheduling) for row in rows
    ]
    sizes = captured_sizes(costs, GraphMode.FULL) if isinstance(costs, TableStepCosts) else []
    if isinstance(costs, TableStepCosts) and not sizes:
        sizes = captured_sizes(costs, GraphMode.PIECEWISE)
    return {
        "context_tokens": SHOWN_CONTEXT_TOKENS,
        "rows": rows,
        "ms": [step.step_ms for step in steps],
        "graph": [step.graph for step in steps],
        "capture_sizes": [size for size in sizes if size <= last],
    }


def _last_rows(calibration: Calibration) -> int:
    """How far the curve goes: the calibrated batch, or the dense rows, at most as many requests as engines hold."""
    costs = calibration.costs
    if calibration.fitted_range and calibration.fitted_range.max_decode_batch:
        return calibration.fitted_range.max_decode_batch
    if isinstance(costs, RoundCosts):
        return costs.batch[-1]
    if isinstance(costs, TableCosts):
        columns = (costs.dense.full, costs.dense.piecewise, costs.dense.eager)
        return min(UNBOUNDED_ROWS, max(curve.rows[-1] for curve in columns if curve is not None))
    return UNBOUNDED_ROWS


def _spread(last: int) -> Sequence[int]:
    """Every row count where that is few enough, else evenly many by ratio."""
    if last <= PLOT_POINTS:
        return list(range(1, last + 1))
    return sorted({int(row) for row in np.geomspace(1, last, PLOT_POINTS).round()})
