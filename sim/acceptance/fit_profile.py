"""From a log to the law of a profile, with what the log itself shows beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..formats.acceptance_log import AcceptanceLog, LogSequence
from ..inputs.acceptance_models import Memory
from ..inputs.errors import InputError, Problem
from ..inputs.profile import ALL_TASKS, ChainLaw, LengthLink, LookupLaw, Observed
from .fit_chain import SequenceWorld, fit_chain, measured_rates
from .fit_ngram import fit_ngram, lookup_log, ngram_rates
from .replay import log_sample
from .round_sample import LAGS, RoundSample, stepping_window

FEWEST_SEQUENCES = 10
FEWEST_LOG_ROUNDS = 200
_DEEPEST = 24  # draft positions of a log whose draft lengths vary
_CHECK_SEED = 77  # of the simulated log that is shown: other draws than those of the fit
_POSITION_DEPTH = 16  # drafts at which a log by position is fitted

Progress = Callable[[str], None]


def fit_tasks(
    log: AcceptanceLog, tasks: Mapping[str, Sequence[LogSequence]], progress: Progress | None = None
) -> dict[str, ChainLaw | LookupLaw]:
    """The law of all sequences, then of each task; a task's memory keeps the correlation found on all of them.

    Tasks with fewer than 10 sequences or 200 rounds are left out. Raises InputError if all together have fewer.
    """
    every = list(log.sequences)
    if not _enough(log, every):
        what = f"{len(every)} sequences, {sum(len(one.accepted) for one in every)} rounds or positions"
        rule = f"a fit needs at least {FEWEST_SEQUENCES} sequences and {FEWEST_LOG_ROUNDS} rounds"
        raise InputError([Problem(log.file, 1, 1, "file", what, rule, "log more requests")])
    laws: dict[str, ChainLaw | LookupLaw] = {}
    for task, sequences in {ALL_TASKS: every, **{name: list(part) for name, part in tasks.items()}}.items():
        if not _enough(log, sequences):
            continue
        if progress is not None:
            progress(task)
        whole = laws.get(ALL_TASKS)
        phi = whole.memory.phi if isinstance(whole, ChainLaw) and whole.memory else None
        laws[task] = fit_law(log, sequences, phi)
    return laws


def fit_law(log: AcceptanceLog, sequences: list[LogSequence], phi: float | None = None) -> ChainLaw | LookupLaw:
    """The law of some sequences of a log; phi: the memory's correlation, if it is known already."""
    if is_lookup(log):
        return _fit_lookup(log, sequences)
    sample = log_sample(log, sequences)
    k = log.k or min(_DEEPEST, int(sample.drafted.max()))
    window = stepping_window(sample)
    law = fit_chain(sample, k, window=window) if phi is None else fit_chain(sample, k, (phi,), window)
    link = law.length_link
    return ChainLaw(
        form="chain",
        conditional=_rounded(measured_rates(sample, k)),
        centre=[_digits(1 / (1 + odds)) for odds in law.odds_against],
        sigma=_digits(law.sigma),
        memory=Memory(phi=law.phi, sd=_digits(law.memory_sd)) if law.memory_sd else None,
        length_link=LengthLink(
            correlation=_digits(link.correlation),
            median_tokens=_digits(link.median_tokens),
            log_sd=_digits(link.log_sd),
        )
        if link
        else None,
        observed=observed(sample),
        simulated=observed(SequenceWorld(sample.output_tokens, k, window, _CHECK_SEED).log(law)),
    )


def is_lookup(log: AcceptanceLog) -> bool:
    """Whether rounds without any draft occur: only a look-up drafter has them."""
    return any(one.drafted is not None and bool(np.any(one.drafted[1:] == 0)) for one in log.sequences)


def fitted_k(log: AcceptanceLog) -> int | None:
    """The draft length that a profile of this log states; None where it varied."""
    if is_lookup(log):
        return _lookup_depth(log)
    return log.k


def observed(sample: RoundSample) -> Observed:
    """What a sample shows."""
    means, rows = sample.request_means()
    logs = np.log(sample.output_tokens[rows])
    covariances = sample.autocovariances() / max(float(sample.accepted.var()), 1e-12)
    horizon = sample.rounds_to_commit()
    spread = float(means.std()) * float(logs.std()) if len(means) else 0.0
    link = float(np.mean((means - means.mean()) * (logs - logs.mean()))) / spread if spread else 0.0
    ends = [float(np.percentile(horizon, part)) for part in (10, 90)] if len(horizon) else [None, None]
    return Observed(
        sequences=len(sample.output_tokens),
        rounds=len(sample.accepted),
        tokens_per_round=_digits(sample.tokens_per_round),
        request_sd=_digits(float(means.std())) if len(means) else 0.0,
        length_correlation=_digits(link),
        autocorrelation={str(lag): _digits(float(value)) for lag, value in zip(LAGS, covariances, strict=True)},
        p10_rounds_per_128_tokens=ends[0],
        p90_rounds_per_128_tokens=ends[1],
    )


def _fit_lookup(log: AcceptanceLog, sequences: list[LogSequence]) -> LookupLaw:
    k = _lookup_depth(log)
    sample = log_sample(log, sequences, k)
    law = fit_ngram(sample, k)
    rates = ngram_rates(sample, k)
    match = [_digits(1 / (1 + odds)) for odds in law.odds_against_match]
    return LookupLaw(
        form="ngram",
        match_after_match=_digits(rates.match[0]),
        match_after_none=_digits(rates.match[1]),
        conditional=_rounded(rates.accepted),
        proposed=_rounded(rates.proposed) if law.proposed else None,
        centre_match_after_match=match[0],
        centre_match_after_none=match[1],
        centre=[_digits(1 / (1 + odds)) for odds in law.odds_against],
        centre_proposed=_rounded(np.array(law.proposed)) if law.proposed else None,
        sigma=_digits(law.sigma),
        observed=observed(sample),
        simulated=observed(lookup_log(law, sample.output_tokens, k, _CHECK_SEED)),
    )


def _lookup_depth(log: AcceptanceLog) -> int:
    """Drafts per round at which a look-up log is read: its own, or for positions as deep as is worth telling apart."""
    if log.by_position:
        return min(_POSITION_DEPTH, log.k or 1)
    return max(int(one.drafted.max()) for one in log.sequences if one.drafted is not None) or 1


def _enough(log: AcceptanceLog, sequences: list[LogSequence]) -> bool:
    return len(sequences) >= FEWEST_SEQUENCES and (
        log.by_position or sum(len(one.accepted) - 1 for one in sequences) >= FEWEST_LOG_ROUNDS
    )


def _digits(value: float) -> float:
    """Six significant digits: a file that can be read, far finer than any fit."""
    return float(f"{value:.6g}")


def _rounded(values: np.ndarray) -> list[float]:
    return [_digits(float(value)) for value in values]
