"""Rules across keys: what each key allows, but not all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .acceptance_checks import acceptance_findings
from .arm_checks import arm_findings
from .arm_overrides import arm_data
from .calibration import AffineCosts
from .engine_checks import engine_findings
from .parts import parts_of
from .run_checks import run_findings
from .scenario import Scenario
from .source import Finding
from .speculation_checks import speculation_findings
from .style_words import style_findings
from .validation import validated
from .workload_checks import workload_findings

MAX_ARMS = 100


def scenario_findings(data: Mapping[str, Any]) -> list[Finding]:
    """Every mistake in the data of a scenario, arms included."""
    found = [*_one_arm_findings(data)]
    arms = data.get("arms", {})
    if not isinstance(arms, dict):
        return found
    if len(arms) > MAX_ARMS:
        return [*found, Finding("arms", f"{len(arms)} arms", f"at most {MAX_ARMS}", "use a sweep")]
    found += arm_findings(data, arms)
    found += style_findings(data)
    known = {finding[:3] for finding in found}
    for name, (own_data, origins) in arm_data(data).items():
        for finding in _one_arm_findings(own_data) if origins else ():
            if finding[:3] not in known:
                found.append(_placed(finding, name, origins))
    return list(dict.fromkeys(found))


def costs_nothing(costs: AffineCosts) -> bool:
    """Whether a step of a lone first token would take no time at all."""
    return not any(
        (
            costs.target_fixed_ms,
            costs.target_per_token_us,
            costs.sampling_fixed_ms,
            costs.kv_update_per_token_us,
            costs.host_ms,
        )
    )


def _one_arm_findings(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Everything that is wrong with one scenario; its `arms` are not looked into."""
    yield from validated(Scenario, data)[1]
    parts = parts_of(data)
    yield from workload_findings(parts)
    yield from acceptance_findings(parts)
    yield from engine_findings(parts)
    yield from speculation_findings(parts)
    yield from run_findings(parts)
    if parts.calibration is not None and costs_nothing(parts.calibration):
        rule = "a step of the target takes time"
        yield Finding("calibration", "costs nothing", rule, "give target_fixed_ms or target_per_token_us")


def _placed(finding: Finding, arm: str, origins: Mapping[str, str]) -> Finding:
    """A finding in an arm's data, moved to the override it comes from, or to the arm as a whole."""
    above = finding.field
    while above:
        if above in origins:
            return finding._replace(field=origins[above] + finding.field[len(above) :])
        above = above.rpartition(".")[0]
    return finding._replace(field=f"arms.{arm}.{finding.field}", at=f"arms.{arm}", at_key=True)
