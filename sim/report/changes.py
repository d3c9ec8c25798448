"""What an arm changes against the baseline, metric by metric, with the statistical verdict where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .number_text import from_to_text, number_text

MIN_EFFECT = 0.01  # a smaller relative difference decides nothing, even where it is statistically certain


@dataclass(frozen=True, slots=True)
class Headline:
    """A metric that the answer speaks of. `better` and `worse` are the words for it, as in `1.62x faster TPOT`."""

    metric: str
    label: str
    unit: str
    higher_is_better: bool
    better: str
    worse: str


TPOT = Headline("mean_tpot_ms", "TPOT", "ms", False, "faster", "slower")
OUTPUT_THROUGHPUT = Headline("output_throughput", "output throughput", "tok/s", True, "higher", "lower")
E2E = Headline("mean_e2el_ms", "E2E latency", "ms", False, "shorter", "longer")
TTFT = Headline("mean_ttft_ms", "TTFT", "ms", False, "shorter", "longer")
COST = Headline("usd_per_successful_task", "cost per successful task", "$", False, "lower", "higher")
HEADLINES = (TPOT, OUTPUT_THROUGHPUT, TTFT, E2E, COST)


@dataclass(frozen=True, slots=True)
class Change:
    """One metric from the baseline to an arm. `direction`: 1 better, -1 worse, 0 no difference.

    `tested` is true where a paired interval decided, false where only the values were compared.
    """

    headline: Headline
    before: float
    after: float
    direction: int
    tested: bool

    def __str__(self) -> str:
        values = from_to_text(self.before, self.after, self.headline.unit)
        if self.direction == 0:
            told = "no difference shown in" if self.tested else "practically the same"
            return f"{told} {self.headline.label} ({values})"
        word = self.headline.better if self.direction > 0 else self.headline.worse
        if min(self.before, self.after) <= 0:
            return f"{word} {self.headline.label} ({values})"
        factor = max(self.before / self.after, self.after / self.before)
        return f"{number_text(factor)}x {word} {self.headline.label} ({values})"


def metric_value(arm: dict[str, Any], metric: str) -> float | None:
    """A metric of an arm, cost rows included; None where there is none."""
    if metric in arm:
        value: float | None = arm[metric]
    else:
        value = (arm.get("cost") or {}).get(metric)
    return value


def changes(document: dict[str, Any], arm_name: str) -> dict[str, Change]:
    """The headline metrics that both arms have, by metric name."""
    baseline, arm = document["arms"]["baseline"], document["arms"][arm_name]
    compared = document["comparison"].get(arm_name, {})
    found = {}
    for headline in HEADLINES:
        before, after = metric_value(baseline, headline.metric), metric_value(arm, headline.metric)
        if before is not None and after is not None:
            verdict = compared.get(headline.metric, {}).get("verdict", "not_tested")
            found[headline.metric] = _change(headline, before, after, verdict)
    return found


def _change(headline: Headline, before: float, after: float, verdict: str) -> Change:
    tested = verdict != "not_tested"
    small = abs(after - before) <= MIN_EFFECT * max(abs(before), abs(after))
    if small or verdict == "no_difference_shown":
        direction = 0
    else:
        direction = 1 if (after > before) == headline.higher_is_better else -1
    return Change(headline, before, after, direction, tested)
