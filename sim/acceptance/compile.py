"""From an acceptance model of a scenario to its law: the odds under which a log shows what the model states.

`per_position` states what a log shows at `fitted_k`, pooled over rounds. Requests with low acceptance have more rounds,
and with memory a round starts right after a hard position, so the odds at the centre of the spread are not those
of the pooled vector. They are solved for on the expected log of long outputs (256 tokens).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..inputs.acceptance_models import AcceptanceLength, Iid, Named, Ngram, PerPosition, Rate
from ..inputs.errors import SpecsimError
from ..inputs.load_profile import ProfileDefect, law_of_task, profile_file, read_profile
from ..inputs.profile import AcceptanceProfile, ChainLaw, LookupLaw
from .dashboard import dashboard_alpha
from .fit_ngram import NgramRates, moved_to
from .law import AcceptanceLaw, Floats, LengthLink, hardness_of, odds_against
from .logit_memory import normal_quantiles, stationary_states
from .ngram_runs import NgramLaw
from .pooled_log import pooled_conditional

Lawful = Iid | Rate | AcceptanceLength | PerPosition | Ngram | Named  # every kind that is drawn, not replayed

NO_SPREAD = 1e-6  # a shift of the logit that nobody could see
FIT_OUTPUT_TOKENS = 256
_FIT_SHIFTS = 256
_FIT_PATH_DRAFTS = 1 << 14  # paths times draft positions: keeps a fit near one second at any depth
_MOST_FIT_PATHS = 2048
_FIT_SEED = 1
_GOLDEN_RATIO = (5**0.5 - 1) / 2
_TOLERANCE = 1e-4
_MOST_PASSES = 200


def law_of(acceptance: Lawful, base_dir: Path = Path()) -> AcceptanceLaw | NgramLaw:
    """The law of a model other than `replay`; a profile's file starts at base_dir.

    Raises SpecsimError for values that contradict each other or cannot be fitted, InputError for a broken profile.
    """
    if isinstance(acceptance, Named):
        return named_law(acceptance, base_dir)
    if isinstance(acceptance, Ngram):
        return _ngram_law(acceptance.model_dump_json())
    return compile_acceptance(acceptance)


def compile_acceptance(acceptance: Iid | Rate | AcceptanceLength | PerPosition) -> AcceptanceLaw:
    """The chain law of a stated model. Raises SpecsimError as `law_of`."""
    if isinstance(acceptance, Iid):
        return AcceptanceLaw(tuple(odds_against(np.array([acceptance.alpha])).tolist()))
    if not isinstance(acceptance, PerPosition):
        odds = odds_against(np.array([dashboard_alpha(acceptance)]))
        return AcceptanceLaw(tuple(odds.tolist()), measured_depth=acceptance.num_speculative_tokens)
    conditional = conditional_acceptance(acceptance)
    fitted_k = acceptance.fitted_k or len(conditional)
    phi, memory_sd = (acceptance.memory.phi, acceptance.memory.sd) if acceptance.memory else (0.0, 0.0)
    sigma, memory_sd = (spread if spread > NO_SPREAD else 0.0 for spread in (acceptance.sigma, memory_sd))
    centre = _centre_odds(conditional, fitted_k, sigma, phi, memory_sd)
    return AcceptanceLaw(centre, sigma, phi, memory_sd, len(conditional))


def named_law(named: Named, base_dir: Path) -> AcceptanceLaw | NgramLaw:
    """The law of a profile's task. Raises InputError where there is no such profile or task."""
    path = profile_file(named.name, base_dir)
    if isinstance(path, ProfileDefect):
        raise SpecsimError(f"acceptance: {path.what}, {path.rule}, {path.remedy}")
    status = path.stat()
    profile = _profile(path, status.st_mtime_ns, status.st_size)
    law = law_of_task(profile, named.task)
    if isinstance(law, ProfileDefect):
        raise SpecsimError(f"acceptance: {law.what}, {law.rule}, {law.remedy}")
    return profile_law(law, profile.fitted_k)


def profile_law(law: ChainLaw | LookupLaw, fitted_k: int | None) -> AcceptanceLaw | NgramLaw:
    """The stored law as it is drawn from; a chain law without its centre is compiled at fitted_k."""
    depth = len(law.conditional)
    if isinstance(law, LookupLaw):
        match = _odds([law.centre_match_after_match, law.centre_match_after_none])
        return NgramLaw((match[0], match[1]), _odds(law.centre), tuple(law.centre_proposed or ()), law.sigma, depth)
    phi, memory_sd = (law.memory.phi, law.memory.sd) if law.memory else (0.0, 0.0)
    if law.centre is None:
        centre = _centre_odds(tuple(law.conditional), fitted_k or depth, law.sigma, phi, memory_sd)
    else:
        centre = _odds(law.centre)
    link = law.length_link
    linked = None if link is None else LengthLink(link.correlation, link.median_tokens, link.log_sd)
    return AcceptanceLaw(centre, law.sigma, phi, memory_sd, depth, linked)


@lru_cache(maxsize=32)
def _profile(path: Path, _modified_ns: int, _size: int) -> AcceptanceProfile:
    return read_profile(path)


@lru_cache(maxsize=64)
def _ngram_law(acceptance: str) -> NgramLaw:
    """The law whose log at fitted_k shows the stated rates, found on outputs of 256 tokens."""
    ngram = Ngram.model_validate_json(acceptance)
    k = ngram.fitted_k or len(ngram.conditional)
    wanted = NgramRates(
        np.array([ngram.match_after_match, ngram.match_after_none]),
        np.array(ngram.conditional),
        np.array((ngram.proposed or [1.0])[:k]),
    )
    return moved_to(wanted, k, np.full(_FIT_SHIFTS, FIT_OUTPUT_TOKENS), sigma=ngram.sigma)


def _odds(probabilities: Sequence[float]) -> tuple[float, ...]:
    return tuple(odds_against(np.array(probabilities)).tolist())


def conditional_acceptance(acceptance: PerPosition) -> tuple[float, ...]:
    """P(position i accepted | all before it were); unconditional rates are divided by their predecessors.

    Behind a position that is never accepted the conditional is not known: 0. Raises SpecsimError for rates that rise.
    """
    if acceptance.conditional is not None:
        return tuple(acceptance.conditional)
    unconditional = acceptance.unconditional or []
    before = [1.0, *unconditional[:-1]]
    if any(rate > last for rate, last in zip(unconditional, before, strict=True)):
        raise SpecsimError(
            f"acceptance: unconditional {unconditional}, a deeper draft position is never accepted more often than the "
            "one before it, write the values as conditional if that is what they are"
        )
    return tuple(rate / last if last else 0.0 for rate, last in zip(unconditional, before, strict=True))


@lru_cache(maxsize=256)
def _centre_odds(
    conditional: tuple[float, ...], fitted_k: int, sigma: float, phi: float, memory_sd: float
) -> tuple[float, ...]:
    """Odds by draft position at the centre of the spread.

    Each pass moves a position's log odds by what the expected log still lacks: an average of logistic curves is nowhere
    steeper than one of them, so the passes approach without overshooting.
    """
    target = np.array(conditional)
    wanted = odds_against(target)
    if sigma == 0 and memory_sd == 0:
        return tuple(wanted.tolist())
    hardness = _fit_hardness(sigma, phi, memory_sd, fitted_k)
    odds = wanted.copy()
    for _ in range(_MOST_PASSES):
        held = np.pad(odds, (0, fitted_k - len(odds)), mode="edge")
        seen = pooled_conditional(held, hardness)[: len(target)]
        free = (wanted > 0) & np.isfinite(wanted) & (seen > 0) & (seen < 1)
        if np.all(np.abs(seen[free] / target[free] - 1) < _TOLERANCE):
            return tuple(odds.tolist())
        odds[free] *= wanted[free] / odds_against(seen[free])
    raise RuntimeError(f"no centre found for {conditional} at sigma {sigma}, phi {phi}, sd {memory_sd}")


def _fit_hardness(sigma: float, phi: float, memory_sd: float, depth: int) -> Floats:
    """Hardness [request, position] of the requests to fit on: equally likely shifts, seeded memories.

    Sampling noise of the memories is kept low: first states spread evenly over their distribution and over the shifts,
    each path also mirrored, and every position scaled to its exact standard deviation.
    """
    positions = FIT_OUTPUT_TOKENS + depth
    if memory_sd == 0:
        shifts = sigma * normal_quantiles((np.arange(_FIT_SHIFTS) + 0.5) / _FIT_SHIFTS)
        return hardness_of(np.broadcast_to(shifts[:, None], (_FIT_SHIFTS, positions)))
    count = min(_MOST_FIT_PATHS, _FIT_PATH_DRAFTS // (depth + 1))
    ranks = np.arange(count) + 0.5
    shifts = sigma * normal_quantiles(ranks / count)[:, None]
    normals = np.random.Generator(np.random.PCG64(_FIT_SEED)).standard_normal((count, positions))
    normals[:, 0] = normal_quantiles(ranks * _GOLDEN_RATIO % 1)
    states = stationary_states(normals, phi, memory_sd)
    states *= memory_sd / np.sqrt(np.mean(states**2, axis=0))
    return hardness_of(np.concatenate([shifts + states, shifts - states]))
