"""What `specsim profile` prints: a plan, the folds of a fit, and the end-to-end check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sim.report.number_text import number_text
from sim.report.text_table import text_table

from .check import Choice, LiveCheck
from .folds import Fold
from .plan import Plan, memory_bytes


def plan_text(plan: Plan) -> str:
    """Points, memory and time before anything runs."""
    setup, size = plan.setup, memory_bytes(plan)
    draft = setup.draft.name if setup.draft else "none"
    phases = ", ".join(f"{phase} {count}" for phase, count in plan.phases().items())
    memory = ", ".join(f"{name} {amount / 2**30:.2f}" for name, amount in size.items())
    refine = f" and up to {plan.preset.refine} more between them" if plan.preset.refine else ""
    lines = [
        f"Preset {setup.preset}: {len(plan.points)} points{refine}",
        f"Target {setup.target.name}, draft {draft}, {setup.dtype}, on {setup.device}",
        f"Phases: {phases}",
        f"Memory: {sum(size.values()) / 2**30:.2f} GiB ({memory})",
        f"Time: about {duration(plan.seconds())}, a guess before anything is known of the device",
    ]
    return "\n".join(lines) + "\n"


def duration(seconds: float) -> str:
    """Seconds, or minutes from two of them on."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def fit_text(name: str, path: Path, folds: Mapping[str, Fold], drift: float | None) -> str:
    """Where the calibration is and how far it is from what it has not seen."""
    lines = [f"written: {path}", f"calibration {name}", "", *fold_table(folds)]
    if drift is not None:
        lines.append(f"Drift: the sentinels range over {drift:.1f} % of their median.")
    lines += [
        "",
        "Next:",
        f"  specsim profile check {path.parent}",
        f"  specsim run --set calibration={path.resolve()}",
    ]
    return "\n".join(lines) + "\n"


def fold_table(folds: Mapping[str, Fold]) -> list[str]:
    """One line a fold."""
    header = ("held out, error in %", "cells", "median", "p95", "max", "bias", "worst")
    rows = [
        (
            name.replace("_", " "),
            str(fold.cells),
            *(number_text(one) for one in fold[1:4]),
            f"{fold.bias_percent:+.2f}",
            fold.worst,
        )
        for name, fold in folds.items()
    ]
    return text_table(header, rows)


def check_text(folds: Mapping[str, Fold], live: Sequence[LiveCheck], choices: Sequence[Choice]) -> str:
    """The whole check: folds beside their floor, live loops, and whether k is chosen as measured."""
    lines = [*fold_table(folds)]
    if live:
        header = ("live loop", "steps", "tokens/round", "measured ms", "predicted ms", "error", "by step")
        rows = [
            (
                one.name,
                str(one.steps),
                number_text(one.committed_per_round),
                number_text(one.measured_ms),
                number_text(one.predicted_ms),
                f"{one.error_percent:+.1f} %",
                f"{one.step_error_percent:.1f} %",
            )
            for one in live
        ]
        lines += ["", "The simulator's costs fed with the accepted tokens of a live loop", *text_table(header, rows)]
    if choices:
        header = ("batch", "context", "acceptance", "best k measured", "predicted", "regret", "Kendall tau")
        rows = [
            (
                str(one.batch),
                str(one.context),
                f"{one.acceptance:g}",
                str(one.measured_k),
                str(one.predicted_k),
                f"{one.regret_percent:.1f} %",
                f"{one.kendall_tau:+.2f}",
            )
            for one in choices
        ]
        lines += ["", "The choice of k", *text_table(header, rows, left=0)]
    floor = folds.get("repeatability")
    if floor is not None:
        lines += [
            "",
            f"Floor: a second measurement of the same points differs by {floor.median_percent:.2f} % (median).",
        ]
        lines += verdicts(folds)
    return "\n".join(lines) + "\n"


def verdicts(folds: Mapping[str, Fold]) -> list[str]:
    """Each fold against 1.5 times the floor or 5 %, whichever is more."""
    bar = max(5.0, 1.5 * folds["repeatability"].median_percent)
    return [
        f"{name.replace('_', ' ')}: median {folds[name].median_percent:.2f} %, "
        f"{'within' if folds[name].median_percent <= bar else 'NOT within'} {bar:.1f} %"
        for name in ("interior", "additivity", "live")
        if name in folds
    ]
