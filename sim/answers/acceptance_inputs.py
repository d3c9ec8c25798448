"""Logs and profiles that arms refer to: whether they are there, and what a reader has to know of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..acceptance.compile import law_of
from ..acceptance.law import AcceptanceLaw
from ..acceptance.ngram_runs import NgramLaw
from ..acceptance.replay import reconstructed_share
from ..inputs.acceptance_models import Acceptance, Named, Replay
from ..inputs.arms import Arm
from ..inputs.errors import InputError, Problem
from ..inputs.load import LoadedScenario
from ..inputs.load_profile import ProfileDefect, law_of_task, profile_file, read_profile
from ..inputs.scenario import LOOKUP_METHODS, Slice, TraceArrivals
from ..workload.log_sequences import check_log_files, replayed_log


def acceptance_problems(arms: Sequence[Arm], loaded: LoadedScenario) -> list[Problem]:
    """Logs and profiles that cannot be used, each told once."""
    problems: list[Problem] = []
    base_dir = loaded.base_dir.resolve()
    for arm in arms:
        for index, part in enumerate(arm.slices):
            if isinstance(part.acceptance, Named):
                problems += _profile_problems(part.acceptance, _field(arm, index, loaded), base_dir, loaded)
        try:
            check_log_files(list(arm.slices), base_dir, loaded.problem)
        except InputError as error:
            problems += error.problems
    return list(dict.fromkeys(problems))


def acceptance_warnings(arms: Sequence[Arm], loaded: LoadedScenario) -> list[str]:
    """What the logs and profiles of the drafting arms do not tell."""
    base_dir = loaded.base_dir.resolve()
    traced = isinstance(loaded.scenario.workload.arrivals, TraceArrivals)
    warnings = []
    for arm in arms:
        for part in arm.slices if arm.speculation is not None else ():
            warnings += [f"slice {part.name}: {text}" for text in _slice_warnings(arm, part, traced, base_dir)]
    return list(dict.fromkeys(warnings))


def without_memory(acceptance: Acceptance, base_dir: Path) -> bool:
    """Whether first-position acceptance stays the same whatever the draft length."""
    if isinstance(acceptance, Replay):
        return False
    law = law_of(acceptance, base_dir)
    return isinstance(law, AcceptanceLaw) and not law.memory_sd


def _field(arm: Arm, index: int, loaded: LoadedScenario) -> str:
    own = f"arms.{arm.name}.acceptance"
    overrides = loaded.data.get("arms") or {}
    is_own = isinstance(overrides.get(arm.name), dict) and "acceptance" in overrides[arm.name]
    return own if is_own else f"workload.slices.{index}.acceptance"


def _profile_problems(named: Named, field: str, base_dir: Path, loaded: LoadedScenario) -> list[Problem]:
    path = profile_file(named.name, base_dir)
    if isinstance(path, ProfileDefect):
        return [loaded.problem(f"{field}.{path.key}", *path[1:])]
    try:
        law = law_of_task(read_profile(path), named.task)
    except InputError as error:
        return list(error.problems)
    return [loaded.problem(f"{field}.{law.key}", *law[1:])] if isinstance(law, ProfileDefect) else []


def _slice_warnings(arm: Arm, part: Slice, traced: bool, base_dir: Path) -> Iterator[str]:
    acceptance, speculation = part.acceptance, arm.speculation
    if acceptance is None or speculation is None:
        return
    if isinstance(acceptance, Replay):
        yield from _replay_warnings(acceptance, speculation.num_speculative_tokens, base_dir)
        if traced or part.output_tokens is not None:
            yield (
                "replayed sequences are cut or continued with others of the log to reach the stated output lengths: "
                "the link between acceptance and output length is lost"
            )
        return
    if isinstance(law_of(acceptance, base_dir), NgramLaw) != (speculation.method in LOOKUP_METHODS):
        kind = (
            "a drafter that always proposes k tokens" if speculation.method in LOOKUP_METHODS else "a look-up drafter"
        )
        yield f"method {speculation.method} with the acceptance of {kind}"
    if isinstance(acceptance, Named):
        path = profile_file(acceptance.name, base_dir)
        profile = None if isinstance(path, ProfileDefect) else read_profile(path)
        if profile is not None and profile.shape == "tree":
            yield (
                f"profile {profile.name} was measured with a draft tree; a chain accepts fewer tokens at the same "
                "depth, read its gain as an upper bound"
            )


def _replay_warnings(replay: Replay, k: int, base_dir: Path) -> Iterator[str]:
    log, sequences = replayed_log(replay, base_dir)
    if log.by_position:
        if log.k is not None and k > log.k:
            yield f"the log tells accepted runs of up to {log.k} tokens: longer ones are cut there"
        return
    if all(one.drafted is None for one in sequences):
        yield "the log does not tell how many tokens were drafted: every round is taken to draft all of them"
    share = reconstructed_share(log, sequences, k)
    if share > 0:
        own = "varying draft lengths" if log.k is None else f"num_speculative_tokens {log.k}"
        yield (
            f"the log was recorded at {own}: at {k}, {share:.0%} of the rounds are reconstructed by the nested rule, "
            "not recorded"
        )
