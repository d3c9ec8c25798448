"""The parts of a scenario that are valid by themselves, so that rules across keys are checked beside other mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from .calibration import InlineAffine
from .scenario import AtOnce, Closed, Engine, Gamma, Poisson, Quality, Run, Slice, Speculation, TraceArrivals

_ARRIVALS: dict[str, TypeAdapter[Any]] = {
    "at_once": TypeAdapter(AtOnce),
    "closed": TypeAdapter(Closed),
    "poisson": TypeAdapter(Poisson),
    "gamma": TypeAdapter(Gamma),
    "trace": TypeAdapter(TraceArrivals),
}
_SLICE = TypeAdapter(Slice)
_SPECULATION = TypeAdapter(Speculation)
_ENGINE = TypeAdapter(Engine)
_QUALITY = TypeAdapter(Quality)
_RUN = TypeAdapter(Run)
_AFFINE = TypeAdapter(InlineAffine)


@dataclass(frozen=True, slots=True)
class Parts:
    """Validated parts of a scenario; None where a part is absent or has mistakes of its own.

    slices: the valid ones by their place in the list. all_slices: every one is valid. kind: of the arrivals, if known.
    requests, duration_s: above 0, or None. requests_given, duration_given: the key is there, whatever its value.
    """

    kind: str | None
    arrivals: AtOnce | Closed | Poisson | Gamma | TraceArrivals | None
    requests: int | None
    requests_given: bool
    duration_s: float | None
    duration_given: bool
    slices: Mapping[int, Slice]
    all_slices: bool
    speculation: Speculation | None
    engine: Engine | None
    quality: Quality | None
    run: Run | None
    calibration: InlineAffine | None

    @property
    def drafts(self) -> int:
        """Draft tokens per round; 0 without speculation."""
        return self.speculation.num_speculative_tokens if self.speculation else 0


def parts_of(data: Mapping[str, Any]) -> Parts:
    """Whatever of the data can be used."""
    workload = _mapping(data.get("workload"))
    arrivals = _mapping(workload.get("arrivals"))
    kind = arrivals.get("kind")
    kind = kind if isinstance(kind, str) and kind in _ARRIVALS else None
    raw_slices = workload.get("slices")
    raw_slices = raw_slices if isinstance(raw_slices, list) else []
    slices = {place: part for place, raw in enumerate(raw_slices) if (part := _valid(_SLICE, raw)) is not None}
    requests, duration = workload.get("requests"), workload.get("duration_s")
    return Parts(
        kind=kind,
        arrivals=_valid(_ARRIVALS[kind], arrivals) if kind else None,
        requests=int(requests) if isinstance(requests, int | float) and 0 < requests < 1e9 else None,
        requests_given=requests is not None,
        duration_s=float(duration) if isinstance(duration, int | float) and 0 < duration < 1e9 else None,
        duration_given=duration is not None,
        slices=slices,
        all_slices=bool(raw_slices) and len(slices) == len(raw_slices),
        speculation=_valid(_SPECULATION, data.get("speculation")),
        engine=_valid(_ENGINE, data.get("engine", {})),
        quality=_valid(_QUALITY, data.get("quality", {})),
        run=_valid(_RUN, data.get("run", {})),
        calibration=_valid(_AFFINE, data.get("calibration")),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _valid(adapter: TypeAdapter[Any], raw: Any) -> Any:
    try:
        return adapter.validate_python(raw)
    except ValidationError:
        return None
