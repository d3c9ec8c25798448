"""Rules of `arms`: what an arm may be called and change, and what a lossy comparison states for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .arm_overrides import LENGTHS, ONLY_LOSSY, by_slice, override_findings, slice_names
from .source import Finding

RESERVED = ("baseline", "speculative")


def arm_findings(data: Mapping[str, Any], arms: Mapping[str, Any]) -> Iterator[Finding]:
    """Mistakes in the keys of every arm; what their values make of the scenario is checked with it."""
    for name, overrides in arms.items():
        if isinstance(overrides, dict):
            yield from _one_arm(name, overrides, data)
    yield from _lossy_findings(data, arms)


def _one_arm(name: str, overrides: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Finding]:
    path = f"arms.{name}"
    if not name.strip() or len(name.encode()) > 80 or not name.isprintable():
        yield Finding(path, "is no name", "an arm has a short printable name", "rename it", at_key=True)
    if name != "baseline" and data.get("speculation") is None:
        remedy = "add `speculation: …`"
        yield Finding(path, "overrides nothing", "arms override the speculative arm", remedy, at_key=True)
    if name in RESERVED:
        yield from _reserved(name, overrides, data)
        return
    yield from override_findings(path, overrides, data)
    for key in ONLY_LOSSY if not is_lossy(data) else ():
        if key in overrides:
            what = "differs between arms" if key in LENGTHS else "is set for one arm"
            rule = "a lossless comparison has the same outputs and success rate in every arm"
            yield Finding(f"{path}.{key}", what, rule, "remove it or set quality.contract: lossy", at_key=True)
    if not is_lossy(data) and _changes_model_length(overrides, data):
        rule = "a lossless comparison has the same outputs in every arm"
        remedy = "set it in engine for all arms, or set quality.contract: lossy"
        yield Finding(f"{path}.engine.max_model_len", "cuts outputs in one arm", rule, remedy, at=path)


def _changes_model_length(overrides: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    engine = overrides.get("engine")
    nested = engine if isinstance(engine, dict) else {}
    common = data.get("engine")
    everywhere = common.get("max_model_len") if isinstance(common, dict) else None
    stated = [
        part[key] for part, key in ((overrides, "engine.max_model_len"), (nested, "max_model_len")) if key in part
    ]
    return any(length != everywhere for length in stated)


def _reserved(name: str, overrides: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Finding]:
    """`baseline` and `speculative` are the scenario itself; only what `lossy` demands is stated for them."""
    path = f"arms.{name}"
    allowed: tuple[str, ...] = ()
    if is_lossy(data):
        allowed = ONLY_LOSSY if name == "speculative" else ("success_rate",)
    elif not overrides:
        rule = "names of arms are unique"
        yield Finding(path, f"the {name} arm is there already", rule, "remove it", at_key=True)
    for key in overrides:
        if key not in allowed:
            what = f"the {name} arm is the scenario itself"
            rule = "only under lossy its success_rate is stated here"
            remedy = "set it in the scenario, or give the arm another name"
            yield Finding(f"{path}.{key}", what, rule, remedy, at_key=True)
    yield from override_findings(path, {key: overrides[key] for key in overrides if key in allowed}, data)


def is_lossy(data: Mapping[str, Any]) -> bool:
    """Whether outputs may differ between arms."""
    quality = data.get("quality")
    return isinstance(quality, dict) and quality.get("contract") == "lossy"


def _lossy_findings(data: Mapping[str, Any], arms: Mapping[str, Any]) -> Iterator[Finding]:
    """Under `lossy` every arm states its own success rate; the slices' own rates are the baseline's."""
    if not is_lossy(data):
        return
    every = ["baseline", "speculative", *(name for name in arms if name not in RESERVED)]
    for name in every if data.get("speculation") is not None else every[:1]:
        overrides = arms.get(name)
        stated = overrides.get("success_rate") if isinstance(overrides, dict) else None
        missing = [one for one in slice_names(data) if stated is None or (by_slice(stated) and one not in stated)]
        if name == "baseline":
            missing = [one for one in missing if not _slice_states_rate(one, data)]
        if missing:
            what = f"is missing for {', '.join(missing[:5])}"
            rule = "under lossy every arm states its success rate"
            at = f"arms.{name}" if name in arms else "quality.contract"
            yield Finding(f"arms.{name}.success_rate", what, rule, f"add success_rate to arms.{name}", at=at)


def _slice_states_rate(name: str, data: Mapping[str, Any]) -> bool:
    slices = data["workload"]["slices"]
    return any(isinstance(part, dict) and part.get("name") == name and "success_rate" in part for part in slices)
