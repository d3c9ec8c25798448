"""What an arm changes: from the keys under `arms` to the data of a scenario of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .scenario import Engine, Speculation
from .source import Finding
from .wording import did_you_mean, listed, shown

PER_SLICE = ("acceptance", "success_rate", "prompt_tokens", "output_tokens")
ONLY_LOSSY = ("success_rate", "prompt_tokens", "output_tokens")
LENGTHS = ("prompt_tokens", "output_tokens")
_SECTIONS = {"speculation": tuple(Speculation.model_fields), "engine": tuple(Engine.model_fields)}


def overridden(
    data: Mapping[str, Any], overrides: Mapping[str, Any], where: str = ""
) -> tuple[dict[str, Any], dict[str, str]]:
    """The data with an arm's overrides, and for each path that was set the path of its override under `where`.

    A mapping for `speculation` or `engine` changes the keys it names. A value of a slice's key is for every slice; a
    mapping of slice names (no `kind` in it) is for those.
    """
    new = dict(data)
    origins: dict[str, str] = {}
    for key, value in overrides.items():
        section, _, name = key.partition(".")
        here = f"{where}.{key}"
        if section in _SECTIONS:
            changes = {name: value} if name else value
            if not isinstance(changes, dict):
                new[section], origins[section] = value, here
                continue
            old = new.get(section)
            new[section] = {**old, **changes} if isinstance(old, dict) else changes
            origins |= {f"{section}.{one}": here if name else f"{here}.{one}" for one in changes}
        elif key == "calibration":
            new[key], origins[key] = value, here
        elif key in PER_SLICE:
            _override_slices(new, origins, key, value, here)
    return new, origins


def arm_data(data: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], dict[str, str]]]:
    """Each arm's own data, and where they were set: baseline, then speculative, then those that override it."""
    raw_arms = data.get("arms")
    overrides = {name: value if isinstance(value, dict) else {} for name, value in (raw_arms or {}).items()}
    plain = {**data, "arms": {}}
    found = {"baseline": overridden({**plain, "speculation": None}, overrides.get("baseline", {}), "arms.baseline")}
    if data.get("speculation") is None:
        return found
    speculative, origins = overridden(plain, overrides.get("speculative", {}), "arms.speculative")
    found["speculative"] = speculative, origins
    for name, own in overrides.items():
        if name not in found:
            changed, new_origins = overridden(speculative, own, f"arms.{name}")
            found[name] = changed, origins | new_origins
    return found


def by_slice(value: Any) -> bool:
    """Whether an override names slices, instead of being one value for all."""
    return isinstance(value, dict) and not isinstance(value.get("kind"), str)


def slice_names(data: Mapping[str, Any]) -> list[str]:
    """Names of the slices, as far as the data have any."""
    return [part["name"] for part in _slices(data) if isinstance(part, dict) and isinstance(part.get("name"), str)]


def override_findings(path: str, overrides: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Finding]:
    """Keys that an arm cannot override, and slices that are not there."""
    known = [*_SECTIONS, "calibration", *PER_SLICE]
    known += [f"{section}.{key}" for section, keys in _SECTIONS.items() for key in keys]
    names = slice_names(data)
    for key, value in overrides.items():
        section, _, name = key.partition(".")
        if section not in _SECTIONS and key not in known:
            what = f"an arm cannot override {shown(key)}"
            rule = f"it may override {listed([*_SECTIONS, 'calibration', *PER_SLICE])}"
            yield Finding(f"{path}.{key}", what, rule, did_you_mean(key, known, "remove it"), at_key=True)
        elif name == "" and key.endswith("."):
            yield Finding(f"{path}.{key}", "has no name after the dot", "a path is section.key", "name a key", True)
        elif name and isinstance(overrides.get(section), dict) and name in overrides[section]:
            rule = f"{section} sets it already"
            yield Finding(f"{path}.{key}", "is given twice", rule, "keep one of them", at_key=True)
        if key in PER_SLICE and by_slice(value):
            for one in value:
                if one not in names:
                    remedy = did_you_mean(one, names, "name a slice")
                    what = f"no slice is called {shown(one)}"
                    yield Finding(f"{path}.{key}.{one}", what, f"slices are {listed(names)}", remedy, at_key=True)


def _slices(data: Mapping[str, Any]) -> list[Any]:
    workload = data.get("workload")
    slices = workload.get("slices") if isinstance(workload, dict) else None
    return slices if isinstance(slices, list) else []


def _override_slices(new: dict[str, Any], origins: dict[str, str], key: str, value: Any, here: str) -> None:
    slices = list(_slices(new))
    for place, part in enumerate(slices):
        name = part.get("name") if isinstance(part, dict) else None
        if not isinstance(name, str) or (by_slice(value) and name not in value):
            continue
        slices[place] = {**part, key: value[name] if by_slice(value) else value}
        origins[f"workload.slices.{place}.{key}"] = f"{here}.{name}" if by_slice(value) else here
    if slices:
        new["workload"] = {**new["workload"], "slices": slices}
