"""Write the acceptance profiles that are shipped, from recorded logs and published vectors.

    python scripts/acceptance_profiles.py DATA [NAME...]

DATA is a folder with `acceptance/` (round logs) and `prompts/` (token ids). NAMEs write only those profiles. The logs
stay where they are: a profile holds fitted numbers, their provenance and the licence of the source.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sim.acceptance.fit_profile import fit_tasks, fitted_k
from sim.acceptance.prompt_lookup import lookup_runs
from sim.formats.acceptance_log import AcceptanceLog, LogSequence, read_acceptance_log
from sim.inputs.calibration import Models, Provenance
from sim.inputs.profile import PROFILE_SCHEMA, AcceptanceProfile, ChainLaw
from sim.report.profile_json import profile_json

FOLDER = Path(__file__).resolve().parents[1] / "calibrations" / "acceptance"
DATE = "2026-11-30"
MT_BENCH = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
SPEC_BENCH = {
    "mt_bench": MT_BENCH,
    "translation": ("translation",),
    "summarization": ("summarization",),
    "qa": ("qa",),
    "math": ("math_reasoning",),
    "rag": ("rag",),
}
LICENCE = "Apache-2.0 (the logs); only numbers derived from them are here."
LOOKUP_DEPTH = 24
LIMITS = [
    "Greedy decoding at batch 1: nothing about sampling at a temperature, nothing about production traffic.",
    "The last round of each sequence, cut by the end of text, is left out.",
]


@dataclass(frozen=True)
class Source:
    """A round log and what it is of."""

    file: str
    method: str
    shape: Literal["chain", "tree"]
    target: str
    draft: str
    repository: str
    notes: tuple[str, ...] = ()
    spec_bench: bool = True


LOGS = {
    "eagle-chain-llama-3-8b": Source(
        "eagle_chain_k6_llama3_8b_specbench.jsonl",
        "eagle",
        "chain",
        "Llama-3-8B-Instruct",
        "EAGLE head, chain of 6",
        "clx1415926/CALISPEC (653799b9)",
        ("The pair of models is inferred from the repository's script.",),
    ),
    "sps-68m-vicuna-7b-heuristic": Source(
        "sps68m_heuristic_vicuna7b_specbench.jsonl",
        "draft_model",
        "chain",
        "Vicuna-7B v1.3",
        "Vicuna-68M",
        "Spec-Bench style answers: yukiki-jc/Spec-Bench (3b73a28c), BNukhkadiev/Spec-Bench (0f000117)",
        (
            "Draft lengths of the log: 5 at first, 2 more after a fully accepted round, else 1 less. The fit simulates "
            "that rule; the law itself drafts any k.",
        ),
    ),
    "sps-68m-vicuna-7b-confidence": Source(
        "sps68m_confidence_k20_vicuna7b_specbench.jsonl",
        "draft_model",
        "chain",
        "Vicuna-7B v1.3",
        "Vicuna-68M, stops drafting when unsure, at most 20",
        "Spec-Bench style answers: yukiki-jc/Spec-Bench (3b73a28c), BNukhkadiev/Spec-Bench (0f000117)",
        (
            "The log does not tell how many tokens were drafted. Rounds are read as if all 20 had been, so that "
            "accepted tokens are right and drafted ones too many.",
        ),
    ),
    "eagle-1-tree-vicuna-7b": Source(
        "eagle1_tree_vicuna7b_specbench.jsonl",
        "eagle",
        "tree",
        "Vicuna-7B v1.3",
        "EAGLE-1 tree",
        "Spec-Bench style answers: yukiki-jc/Spec-Bench (3b73a28c), BNukhkadiev/Spec-Bench (0f000117)",
    ),
    "medusa-tree-vicuna-7b": Source(
        "medusa_tree_vicuna7b_mtbench.jsonl",
        "medusa",
        "tree",
        "Vicuna-7B v1.3",
        "Medusa-1 tree",
        "Spec-Bench style answers: yukiki-jc/Spec-Bench (3b73a28c), BNukhkadiev/Spec-Bench (0f000117)",
        spec_bench=False,
    ),
    "hydra-tree-vicuna-7b": Source(
        "hydra_tree_vicuna7b_productrank.jsonl",
        "hydra",
        "tree",
        "Vicuna-7B v1.3",
        "Hydra tree",
        "Spec-Bench style answers: yukiki-jc/Spec-Bench (3b73a28c), BNukhkadiev/Spec-Bench (0f000117)",
        ("One task, ranking of products, 50 requests.",),
        spec_bench=False,
    ),
}
PROMPTS = "specbench_vicuna7b_greedy_llama_tokens.json"
LOOKUPS = {"ngram-2-4-vicuna-7b": (4, 2), "ngram-1-3-vicuna-7b": (3, 1)}

MT_BENCH_TABLE = "vLLM's table of dynamic speculative decoding, github.com/vllm-project/vllm/pull/32374 (MT-Bench)"
PUBLISHED: dict[str, dict[str, Any]] = {
    "eagle-1-llama-3.1-8b-published": {
        "method": "eagle",
        "models": ("Llama-3.1-8B-Instruct", "EAGLE-1 head"),
        "source": MT_BENCH_TABLE,
        "unconditional": {"all": [0.68, 0.39, 0.20, 0.10, 0.06, 0.03, 0.02]},
    },
    "eagle-3-llama-3.1-8b-published": {
        "method": "eagle3",
        "models": ("Llama-3.1-8B-Instruct", "EAGLE-3 head"),
        "source": MT_BENCH_TABLE,
        "unconditional": {"all": [0.76, 0.54, 0.39, 0.28, 0.21, 0.15, 0.12]},
    },
    "mtp-glm-4.5-air-published": {
        "method": "mtp",
        "models": ("GLM-4.5-Air", "its MTP head"),
        "source": "Liu, Yu, Park, Stoica, Cheung, Speculative Decoding: Performance or Illusion?, arXiv:2601.11580",
        "unconditional": {"all": [0.92, 0.68, 0.38]},
    },
    "eagle-llama-3.1-8b-tasks-published": {
        "method": "eagle",
        "models": ("Llama-3.1-8B-Instruct", "EAGLE head"),
        "source": "Rates at k = 3 computed from the data of arXiv:2601.11580 (github.com/SpecDecode-Bench/simulator)",
        "conditional": {
            "gsm8k": [0.685, 0.647, 0.640],
            "cnn": [0.652, 0.637, 0.651],
            "sharegpt": [0.623, 0.613, 0.660],
            "instructcoder": [0.636, 0.667, 0.710],
        },
        "alpha_sd": {"gsm8k": 0.037, "cnn": 0.055, "sharegpt": 0.109, "instructcoder": 0.170},
    },
}


def logged(name: str, data: Path) -> AcceptanceProfile:
    """A profile of a round log."""
    source = LOGS[name]
    log = read_acceptance_log(data / "acceptance" / source.file)
    measured = f"Fitted on {source.file}: Spec-Bench style answer files of {source.repository}."
    return _fitted(name, log, source.method, source.shape, (source.target, source.draft), measured, source)


def looked_up(name: str, data: Path) -> AcceptanceProfile:
    """A profile of prompt lookup on recorded prompts and answers."""
    longest, shortest = LOOKUPS[name]
    sequences = []
    for turn in json.loads((data / "prompts" / PROMPTS).read_text("utf-8")):
        prompt, answer = np.array(turn["p"], dtype=np.int64), np.array(turn["o"], dtype=np.int64)
        drafted, accepted = lookup_runs(prompt, answer, longest, shortest, LOOKUP_DEPTH)
        if len(answer):
            runs = accepted.astype(np.int64), drafted.astype(np.int64)
            sequences.append(LogSequence(str(turn["id"]), turn["cat"], *runs))
    log = AcceptanceLog(PROMPTS, True, tuple(sequences), LOOKUP_DEPTH)
    measured = (
        f"Our own look-up (n from {longest} down to {shortest}) on the tokens of Spec-Bench prompts "
        "(hemingkx/Spec-Bench, fd2c1cd7) and Vicuna-7B's greedy answers."
    )
    models = ("Vicuna-7B v1.3", f"prompt lookup, n = {longest} .. {shortest}")
    return _fitted(name, log, "ngram", "lookup", models, measured, None)


def _fitted(
    name: str,
    log: AcceptanceLog,
    method: str,
    shape: Literal["chain", "tree", "lookup"],
    models: tuple[str, str],
    measured: str,
    source: Source | None,
) -> AcceptanceProfile:
    by_task: dict[str, list[LogSequence]] = {}
    if source is None or source.spec_bench:
        by_task = {
            task: [one for one in log.sequences if one.category in categories]
            for task, categories in SPEC_BENCH.items()
        }
    notes = [*LIMITS, *(source.notes if source else ())]
    if shape == "tree":
        notes.append("A tree: acceptance along its best branch. It does not carry over to a chain of the same depth.")
    return AcceptanceProfile(
        schema=PROFILE_SCHEMA,
        name=name,
        kind="fitted",
        method=method,
        shape=shape,
        fitted_k=fitted_k(log),
        provenance=Provenance(source=measured, date=DATE, licence=LICENCE, notes=notes),
        models=Models(target=models[0], draft=models[1]),
        laws=fit_tasks(log, by_task, partial(print, f"{name}:", file=sys.stderr)),
    )


def published(name: str, _: Path) -> AcceptanceProfile:
    """A profile of vectors that somebody printed."""
    entry = PUBLISHED[name]
    notes = ["No memory along the output and no link with output length: the source does not tell."]
    laws: dict[str, Any] = {}
    for task, rates in (entry.get("unconditional") or entry["conditional"]).items():
        conditional = list(rates)
        if "unconditional" in entry:
            conditional = [round(rate / before, 4) for before, rate in zip([1.0, *rates], rates, strict=False)]
        sigma = 0.0
        if "alpha_sd" in entry:
            alpha = conditional[0]
            sigma = round(entry["alpha_sd"][task] / (alpha * (1 - alpha)), 3)
        laws[task] = ChainLaw(form="chain", conditional=conditional, sigma=sigma)
    if "unconditional" in entry:
        notes.append("Printed as unconditional rates with two digits; conditional rates are their ratios.")
        notes.append("No spread over requests: p95 of decode latency is too low.")
    else:
        notes.append(
            "sigma from the standard deviation of a request's alpha (Beta fit of the same data), divided by a (1 - a)."
        )
    return AcceptanceProfile(
        schema=PROFILE_SCHEMA,
        name=name,
        kind="published",
        method=entry["method"],
        shape="chain",
        fitted_k=max(len(law.conditional) for law in laws.values()),
        provenance=Provenance(
            source=entry["source"], date=DATE, licence="Printed numbers, used as facts.", notes=notes
        ),
        models=Models(target=entry["models"][0], draft=entry["models"][1]),
        laws=laws,
    )


def main(arguments: list[str]) -> int:
    """Write the profiles; returns the exit code."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    data, wanted = Path(arguments[0]), set(arguments[1:])
    makers: dict[str, Callable[[str, Path], AcceptanceProfile]] = {
        **dict.fromkeys(LOGS, logged),
        **dict.fromkeys(LOOKUPS, looked_up),
        **dict.fromkeys(PUBLISHED, published),
    }
    FOLDER.mkdir(exist_ok=True)
    for name, make in makers.items():
        if not wanted or name in wanted:
            (FOLDER / f"{name}.json").write_text(profile_json(make(name, data)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
