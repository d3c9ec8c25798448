"""From an acceptance model of a scenario to its law: the odds under which a log shows what the model states.

`per_position` states what a log shows at `fitted_k`, pooled over rounds. Requests with low acceptance have more rounds,
and with memory a round starts right after a hard position, so the odds at the centre of the spread are not those
of the pooled vector. They are solved for on the expected log of long outputs (256 tokens).
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..inputs.errors import SpecsimError
from ..inputs.scenario import Acceptance, Iid, PerPosition
from .dashboard import dashboard_alpha
from .law import AcceptanceLaw, Floats, hardness_of, odds_against
from .logit_memory import stationary_states
from .pooled_log import pooled_conditional

NO_SPREAD = 1e-6  # a shift of the logit that nobody could see
FIT_OUTPUT_TOKENS = 256
_FIT_SHIFTS = 256
_FIT_PATH_DRAFTS = 1 << 14  # paths times draft positions: keeps a fit near one second at any depth
_MOST_FIT_PATHS = 2048
_FIT_SEED = 1
_GOLDEN_RATIO = (5**0.5 - 1) / 2
_TOLERANCE = 1e-4
_MOST_PASSES = 200


def compile_acceptance(acceptance: Acceptance) -> AcceptanceLaw:
    """The law of a model. Raises SpecsimError for values that contradict each other or cannot be fitted."""
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
        shifts = sigma * _normal_quantiles((np.arange(_FIT_SHIFTS) + 0.5) / _FIT_SHIFTS)
        return hardness_of(np.broadcast_to(shifts[:, None], (_FIT_SHIFTS, positions)))
    count = min(_MOST_FIT_PATHS, _FIT_PATH_DRAFTS // (depth + 1))
    ranks = np.arange(count) + 0.5
    shifts = sigma * _normal_quantiles(ranks / count)[:, None]
    normals = np.random.Generator(np.random.PCG64(_FIT_SEED)).standard_normal((count, positions))
    normals[:, 0] = _normal_quantiles(ranks * _GOLDEN_RATIO % 1)
    states = stationary_states(normals, phi, memory_sd)
    states *= memory_sd / np.sqrt(np.mean(states**2, axis=0))
    return hardness_of(np.concatenate([shifts + states, shifts - states]))


def _normal_quantiles(probabilities: NDArray[np.floating]) -> Floats:
    quantile = NormalDist().inv_cdf
    return np.array([quantile(float(probability)) for probability in probabilities])
