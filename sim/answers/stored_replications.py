"""The replications of a baseline as strict JSON and back, bit by bit: what cells of later runs are compared with."""

from __future__ import annotations

import base64
import binascii
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..analysis.batch_means import BatchSeries
from ..analysis.latency import Latencies
from ..analysis.metrics import ReplicationMetrics
from ..analysis.missed_graphs import MissedGraphs
from ..analysis.overload import OverloadEvidence
from ..engine.records import SamplerCounts
from .replicate import ArmReplication

BASELINE_SCHEMA = "specsim-baseline/1"
_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        ArmReplication,
        ReplicationMetrics,
        BatchSeries,
        Latencies,
        OverloadEvidence,
        SamplerCounts,
        MissedGraphs,
    )
}


def stored_replications(replications: list[ArmReplication]) -> dict[str, Any]:
    """A document for `replications_from`; arrays as base64, other numbers as JSON has them."""
    return {"schema": BASELINE_SCHEMA, "replications": _stored(replications)}


def replications_from(document: dict[str, Any]) -> list[ArmReplication] | None:
    """The replications; None where the document is of another shape."""
    try:
        found = _read(document["replications"])
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
    right = isinstance(found, list) and found and all(isinstance(one, ArmReplication) for one in found)
    return found if right else None


def _stored(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.dtype.str, "shape": value.shape, "base64": base64.b64encode(value.tobytes()).decode()}
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) or hasattr(value, "_fields"):
        names = getattr(value, "_fields", None) or [field.name for field in fields(value)]
        return {"kind": type(value).__name__, "fields": {name: _stored(getattr(value, name)) for name in names}}
    if isinstance(value, dict):
        return {"mapping": {key: _stored(item) for key, item in value.items()}}
    return [_stored(item) for item in value] if isinstance(value, list) else value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {key: _read(item) for key, item in value["mapping"].items()}
    if "array" in value:
        content = base64.b64decode(value["base64"], validate=True)
        return np.frombuffer(content, np.dtype(value["array"])).reshape(value["shape"]).copy()
    return _KINDS[value["kind"]](**{name: _read(item) for name, item in value["fields"].items()})
