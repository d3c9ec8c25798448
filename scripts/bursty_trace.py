"""Write scenarios/bursty-code.jsonl: an invented trace with the burstiness and lengths of a coding assistant.

    python scripts/bursty_trace.py

Within a minute the Azure code trace of 2023 has gaps with a coefficient of variation of 3.2, prompts of median 1469 and
p90 5187, outputs of median 13 and p90 55 (published quantiles; no row of it is in here). Gaps are gamma distributed at
6 requests per second, lengths lognormal, independent of each other.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

REQUESTS = 1500
RATE_PER_S = 6.0
CV = 3.2
Z90 = 1.2815515655446004
PROMPT = (1469.0, 5187.0, 7437)  # median, p90, longest
OUTPUT = (13.0, 55.0, 1000)


def main() -> None:
    """Write the file beside the scenarios."""
    rng = np.random.Generator(np.random.PCG64(20231116))
    shape = 1 / CV**2
    arrivals_s = np.cumsum(rng.gamma(shape, 1 / (RATE_PER_S * shape), REQUESTS))
    columns = zip((arrivals_s - arrivals_s[0]).tolist(), _lengths(rng, *PROMPT), _lengths(rng, *OUTPUT), strict=True)
    lines = [json.dumps({"arrival_s": round(at, 4), "prompt": p, "output": o}) for at, p, o in columns]
    path = Path(__file__).resolve().parents[1] / "scenarios" / "bursty-code.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _lengths(rng: np.random.Generator, median: float, p90: float, longest: int) -> list[int]:
    sigma = math.log(p90 / median) / Z90
    tokens = np.rint(median * np.exp(sigma * rng.standard_normal(REQUESTS)))
    lengths: list[int] = np.clip(tokens, 1, longest).astype(int).tolist()
    return lengths


if __name__ == "__main__":
    main()
