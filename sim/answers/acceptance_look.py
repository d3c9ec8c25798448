"""`specsim acceptance list`, `show` and `fit`: what is inside profiles, as JSON values."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..acceptance.compile import profile_law
from ..acceptance.fit_chain import SequenceWorld
from ..acceptance.fit_ngram import simulated_lookups
from ..acceptance.fit_profile import fit_tasks, fitted_k, is_lookup
from ..acceptance.law import AcceptanceLaw
from ..acceptance.ngram_runs import NgramLaw
from ..acceptance.round_sample import RoundSample
from ..formats.acceptance_log import read_acceptance_log
from ..inputs.calibration import Models, Provenance
from ..inputs.catalog import profile_names, profile_path
from ..inputs.errors import InputError, Problem
from ..inputs.load_profile import ProfileDefect, law_of_task, profile_file, read_profile
from ..inputs.profile import ALL_TASKS, PROFILE_SCHEMA, AcceptanceProfile, Law

LOOK_SCHEMA = "specsim-acceptance-look/1"
SHOWN_DRAFTS = (1, 2, 3, 4, 5, 6, 7, 8)
OUTPUT_TOKENS = 256
_SEQUENCES = 400
_SEED = 3


def listed_profiles() -> list[dict[str, Any]]:
    """One entry for each shipped profile, by name."""
    paths = [path for name in profile_names() if (path := profile_path(name)) is not None]
    return [_identity(read_profile(path)) for path in paths]


def shown_profile(reference: str, task: str | None) -> dict[str, Any]:
    """A shipped name or a file taken apart. Raises InputError."""
    path = profile_file(reference, Path())
    if isinstance(path, ProfileDefect):
        raise InputError([_problem("specsim acceptance show", *path)])
    return look_at(read_profile(path), task, str(path))


def fitted_profile(path: Path, name: str | None, *, tree: bool = False) -> AcceptanceProfile:
    """A profile of a log; its categories are the tasks. Raises InputError."""
    log = read_acceptance_log(path)
    tasks = {task: log.of_task(task) for task in log.categories} if len(log.categories) > 1 else {}
    laws = fit_tasks(log, tasks)
    lookup = is_lookup(log)
    notes = ["The last round of each sequence is left out."] if not log.by_position else []
    if any(one.drafted is None for one in log.sequences) and not log.by_position:
        notes.append("The log does not tell how many tokens were drafted: the longest accepted run is taken.")
    return AcceptanceProfile(
        schema=PROFILE_SCHEMA,
        name=name or path.name.split(".")[0] or "log",
        kind="fitted",
        method="ngram" if lookup else "not stated",
        shape="lookup" if lookup else "tree" if tree else "chain",
        fitted_k=fitted_k(log),
        provenance=Provenance(source=f"fitted on {path.name}", date=_today(), licence="that of the log", notes=notes),
        models=Models(target="not stated"),
        laws=laws,
    )


def look_at(profile: AcceptanceProfile, task: str | None, file: str) -> dict[str, Any]:
    """One law of a profile as values. Raises InputError where it has no such task."""
    chosen = task
    if task is None and ALL_TASKS not in profile.laws:
        chosen = next(iter(profile.laws))
    law = law_of_task(profile, chosen)
    if isinstance(law, ProfileDefect):
        raise InputError([_problem(file, law.key, law.what, law.rule, law.remedy)])
    return {
        "schema": LOOK_SCHEMA,
        **_identity(profile),
        "file": file,
        "provenance": profile.provenance.model_dump(mode="json"),
        "task": chosen or ALL_TASKS,
        "law": law.model_dump(mode="json"),
        "conditional": law.conditional,
        "survival": _survival(law),
        "lengths": _by_draft_length(profile_law(law, profile.fitted_k), law),
    }


def _identity(profile: AcceptanceProfile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "kind": profile.kind,
        "method": profile.method,
        "shape": profile.shape,
        "target": profile.models.target,
        "draft": profile.models.draft,
        "fitted_k": profile.fitted_k,
        "tasks": list(profile.laws),
    }


def _survival(law: Law) -> list[float]:
    """Unconditional rates by position, as vLLM prints them; of a look-up, given a match."""
    survival: list[float] = np.cumprod(law.conditional).tolist()
    return survival


def _by_draft_length(law: AcceptanceLaw | NgramLaw, stored: Law) -> list[dict[str, Any]]:
    """What a log of the law shows at k = 1 .. 8, over outputs of one length."""
    lengths = np.full(_SEQUENCES, OUTPUT_TOKENS, dtype=np.int64)
    depth = len(stored.conditional)
    if isinstance(law, NgramLaw):
        runs = simulated_lookups(law, lengths, _SEED)
        return [_row(runs.log(k), k, depth) for k in SHOWN_DRAFTS]
    world = SequenceWorld(lengths, max(SHOWN_DRAFTS), seed=_SEED)
    return [_row(world.log(law, k), k, depth) for k in SHOWN_DRAFTS]


def _row(log: RoundSample, k: int, measured_depth: int) -> dict[str, Any]:
    means = 1 + log.request_means()[0]
    drafted = log.drafted > 0
    p10, p50, p90 = (float(value) for value in np.percentile(means, (10, 50, 90)))
    return {
        "num_speculative_tokens": k,
        "tokens_per_round": log.tokens_per_round,
        "first_position_acceptance": float(np.mean(log.accepted[drafted] > 0)) if drafted.any() else None,
        "rounds_with_drafts": float(drafted.mean()),
        "p10_request_tokens_per_round": p10,
        "p50_request_tokens_per_round": p50,
        "p90_request_tokens_per_round": p90,
        "beyond_measured_depth": k > measured_depth,
    }


def _problem(file: str, field: str, what: str, rule: str, remedy: str) -> Problem:
    return Problem(file, 1, 1, field, what, rule, remedy)


def _today() -> str:
    """The date of a fit; SOURCE_DATE_EPOCH, where it is set, makes it the same in every run."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.now(datetime.UTC)
    if epoch and epoch.isdigit() and len(epoch) <= 10:
        now = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)
    return now.date().isoformat()
