"""Rules across the keys of `run`: when replications are added, and where one run can be divided into batches."""

from __future__ import annotations

from collections.abc import Iterator

from .parts import Parts
from .scenario import Run
from .source import Finding
from .wording import did_you_mean, shown

MAX_REPLICATIONS = 50  # unless the scenario says otherwise
HEADLINES = ("mean_tpot_ms", "mean_ttft_ms", "p95_e2el_ms", "output_throughput")  # what `precision: 0.05` speaks of
PRECISION_METRICS = (
    *("request_throughput", "request_goodput", "output_throughput", "total_token_throughput"),
    *(
        f"{statistic}_{latency}_ms"
        for latency in ("ttft", "tpot", "itl", "e2el", "decode", "queue")
        for statistic in ("mean", "median", "p95", "p99")
    ),
    *("committed_tokens_per_round", "spec_decode_acceptance_length", "mean_running"),
)
STEADY = ("poisson", "gamma")


def run_findings(parts: Parts) -> Iterator[Finding]:
    """What the keys of `run` rule out for each other, and for other traffic."""
    run = parts.run
    if run is None:
        return
    if run.intervals == "batch_means":
        yield from _batch_means(run, parts)
    if run.precision is not None:
        yield from _precision(run)
    elif run.max_replications is not None:
        rule, remedy = "without precision no replications are added", "add precision, or give replications alone"
        yield Finding("run.max_replications", "has no use", rule, remedy)


def most_replications(run: Run) -> int:
    """How many replications there can be."""
    if run.precision is None:
        return run.replications
    return run.max_replications or max(MAX_REPLICATIONS, run.replications)


def wanted_precision(run: Run) -> dict[str, float]:
    """The largest half-width of each metric's interval, as a fraction of its value; empty where none is asked for."""
    if isinstance(run.precision, dict):
        return dict(run.precision)
    return {} if run.precision is None else dict.fromkeys(HEADLINES, run.precision)


def _precision(run: Run) -> Iterator[Finding]:
    if run.replications < 2:
        rule = "an interval takes at least 2 replications, and the first batch of them decides when to stop"
        yield Finding("run.precision", f"replications is {run.replications}", rule, "give replications: 5 or more")
    if run.max_replications is not None and run.max_replications < run.replications:
        what = f"{run.max_replications} is below replications {run.replications}"
        yield Finding("run.max_replications", what, "max_replications >= replications", "exchange them")
    for name in run.precision if isinstance(run.precision, dict) else ():
        if name not in PRECISION_METRICS:
            remedy = did_you_mean(name, PRECISION_METRICS, "take one such as mean_tpot_ms")
            rule = "known are throughputs, latencies, tokens per round and mean_running of a result"
            yield Finding(f"run.precision.{name}", f"unknown metric {shown(name)}", rule, remedy, at_key=True)


def _batch_means(run: Run, parts: Parts) -> Iterator[Finding]:
    if run.replications > 1 or run.precision is not None:
        what = "precision adds replications" if run.precision is not None else f"{run.replications} replications"
        rule = "batches divide one long run, several runs give intervals by themselves"
        yield Finding("run.intervals", what, rule, "leave replications and precision out, or write replications")
    if parts.kind not in (None, *STEADY):
        rule = f"only {' and '.join(STEADY)} arrivals have a steady state to divide into batches"
        remedy = "write replications and give replications: 5"
        yield Finding("run.intervals", f"batch_means of {parts.kind} arrivals", rule, remedy)
