"""Speed of the simulator against a bare SimPy timeout, measured in one run.

    python benchmarks/speed.py [--quick]

Prints, for batches of 8, 64 and 256 without drafts, with drafts of fixed and of varying length: microseconds a step of
the loop alone and of the whole command, as multiples of a bare SimPy timeout measured between them; then requests per
second, peak memory, and how time grows from 10 to 100 thousand requests. Timings on shared machines are noisy: compare
the multiples of one run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import simpy

from sim.acceptance.build import build_runs, no_acceptance
from sim.answers.plan import plan_run
from sim.engine.loop import simulate
from sim.inputs.load import load_scenario
from sim.workload.build import build_requests

BARE_TIMEOUTS = 50_000


SCHEDULE = "speculation.num_speculative_tokens_per_batch_size"


def scenario(requests: int, concurrency: int, output_tokens: Any) -> dict[str, Any]:
    """A closed loop on affine costs, four drafts at 70 percent; a schedule whose threshold it crosses, and goodput."""
    return {
        "calibration": {
            "kind": "affine",
            "target_fixed_ms": 6,
            "target_per_token_us": 21,
            "target_per_kv_token_ns": 39,
            "draft_fixed_ms": 0.7,
            "num_gpu_blocks": 400000,
            "num_gpu_blocks_baseline": 420000,
        },
        "workload": {
            "requests": requests,
            "arrivals": {"kind": "closed", "concurrency": concurrency},
            "slices": [
                {
                    "name": "x",
                    "prompt_tokens": 200,
                    "output_tokens": output_tokens,
                    "acceptance": {"kind": "iid", "alpha": 0.7},
                }
            ],
        },
        "speculation": {"method": "eagle", "num_speculative_tokens": 4},
        "engine": {"max_num_seqs": 256, "max_num_batched_tokens": 8192},
        "arms": {
            "schedule": {SCHEDULE: [[1, max(1, concurrency - 1), 4], [concurrency, 4096, 2]]},
            "goodput": {"speculation.policy": "goodput"},
        },
    }


def bare_timeout_us() -> float:
    """One SimPy timeout, yielded by one process."""
    env = simpy.Environment()

    def ticks() -> Any:
        for _ in range(BARE_TIMEOUTS):
            yield env.timeout(1.0)

    env.process(ticks())
    began = time.perf_counter()
    env.run()
    return (time.perf_counter() - began) / BARE_TIMEOUTS * 1e6


def written(folder: Path, content: dict[str, Any]) -> Path:
    """The scenario as a file."""
    path = folder / "scenario.json"
    path.write_text(json.dumps(content))
    return path


def loop_us(path: Path) -> list[tuple[str, int, float, float]]:
    """For each arm: name, steps, microseconds a step of the engine alone, and of a bare timeout just before."""
    loaded = load_scenario(path)
    requests = build_requests(loaded.scenario.workload, loaded.base_dir, 1, 0)
    rows = []
    for arm in plan_run(loaded).arms:
        models = [part.acceptance for part in arm.slices]
        runs = build_runs(requests, models, arm.drafts + 1, 1, 0) if arm.drafts else no_acceptance(requests)
        bare = bare_timeout_us()
        began = time.perf_counter()
        records = simulate(requests, runs, arm.settings, arm.costs)
        elapsed = time.perf_counter() - began
        bare = min(bare, bare_timeout_us())
        steps = sum(map(len, records.steps))
        rows.append((arm.name, steps, elapsed / steps * 1e6, bare))
    return rows


def command(path: Path) -> tuple[float, float, dict[str, Any]]:
    """Seconds and peak MB of a whole `specsim run --json` in a process of its own, and what it printed."""
    output = path.with_suffix(".out")
    began = time.perf_counter()
    with output.open("w") as file:
        process = subprocess.Popen([sys.executable, "-m", "sim", "run", str(path), "--json"], stdout=file)
        _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - began
    if status:
        raise SystemExit(f"the command failed with status {status}")
    return elapsed, usage.ru_maxrss / 1024, json.loads(output.read_text())


def loop_table(folder: Path, quick: bool) -> None:
    """Microseconds a step of the loop alone at three batches, for long outputs and for outputs of about 200 tokens."""
    print(f"{'output':>8} {'batch':>5} {'arm':>12} {'steps':>7} {'us a step':>10} {'x bare':>7} {'us a request':>13}")
    for output_tokens, mean in ((2000, 2000), ({"kind": "geometric", "mean": 200}, 200)):
        for batch in (8, 64, 256):
            count = max(2 * batch, 20_000 * batch // mean // (10 if quick else 1))
            for name, steps, us, bare in loop_us(written(folder, scenario(count, batch, output_tokens))):
                request_us = us * steps / count
                print(f"{mean:>8} {batch:>5} {name:>12} {steps:>7} {us:>10.1f} {us / bare:>7.1f} {request_us:>13.0f}")


def command_table(folder: Path, quick: bool) -> None:
    """Whole commands of growing size: time and memory should grow no faster than the requests."""
    for count in (1_000, 10_000) if quick else (10_000, 20_000, 100_000):
        path = written(folder, scenario(count, 64, {"kind": "geometric", "mean": 200}) | {"arms": {}})
        bare = bare_timeout_us()
        seconds, peak_mb, document = command(path)
        bare = min(bare, bare_timeout_us())
        arms = document["arms"].values()
        done = sum(arm["completed"] for arm in arms)
        step_us = seconds / sum(arm["steps"] for arm in arms) * 1e6
        print(
            f"{count:>7} requests, both arms, batch 64: {seconds:.1f} s, {done / seconds:,.0f} requests/s, "
            f"{step_us:.0f} us a step ({step_us / bare:.0f} x bare), peak {peak_mb:.0f} MB"
        )


def main(arguments: list[str]) -> None:
    """All tables."""
    quick = "--quick" in arguments
    with tempfile.TemporaryDirectory() as name:
        loop_table(Path(name), quick)
        command_table(Path(name), quick)


if __name__ == "__main__":
    main(sys.argv[1:])
