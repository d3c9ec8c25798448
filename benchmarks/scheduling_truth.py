"""Replay recorded vLLM runs through our scheduler and compare every step.

    python benchmarks/scheduling_truth.py FILE...

A file holds one or more runs of the real engine, step by step (format: README of the recordings). The committed tokens
of every row are taken from the record, everything else is computed by the same `EngineCore` that `specsim run` drives.
Prints steps compared, steps equal and the first difference of each file; exits 0 only if every step of every run is
equal. Open runs are compared too: their arrivals are fed at the recorded steps.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sim.acceptance.prompt_lookup import lookup_runs
from sim.acceptance.runs import AcceptanceRuns
from sim.engine.core import EngineCore
from sim.engine.policies import FixedDrafts, ScheduleDrafts
from sim.engine.round_tables import RoundTables
from sim.engine.rounds import RoundCounter
from sim.engine.rows import Row, StepPlan
from sim.engine.segments import SegmentLog
from sim.engine.settings import EngineSettings
from sim.workload.requests import Requests


@dataclass
class Outcome:
    """What the replay of one file gave."""

    steps: int = 0
    equal: int = 0
    runs: int = 0
    first_difference: str | None = None


class Recording:
    """One recorded run in a common shape, whichever of the two formats it was stored in."""

    def __init__(
        self,
        settings: EngineSettings,
        run: dict[str, Any],
        has_rows: bool,
        row_fields: list[str],
        lookup: tuple[int, int] | None = None,
    ) -> None:
        self.settings = settings
        self.lookup = lookup
        self.run = run
        self.has_rows = has_rows
        self.row_fields = row_fields
        self.nsteps = len(run["rows"]) if has_rows else len(run["steps"]["nd"])
        self.name = f"C={run['C']}" if run.get("C") else f"open {run.get('run', run).get('open', run.get('frac', ''))}"

    def column(self, name: str, step: int) -> Any:
        """One step's value; a constant column is stored as one number."""
        values = self.run["steps"][name]
        return values[step] if isinstance(values, list) else values

    def rows(self, step: int) -> list[dict[str, int]]:
        """The recorded rows of a step, in the order of scheduling."""
        flat, width = self.run["rows"][step], len(self.row_fields)
        groups = [flat[i : i + width] for i in range(0, len(flat), width)]
        return [dict(zip(self.row_fields, group, strict=True)) for group in groups]

    def requests(self) -> Requests:
        """The run's requests with the output that was delivered (ends by stop token are taken from the record)."""
        entries = self.run["reqs"]
        count = len(entries)
        return Requests(
            arrival_ms=np.zeros(count),
            prompt_tokens=np.array([entry["p"] for entry in entries], dtype=np.int64),
            output_tokens=np.array([entry.get("n", entry["o"]) for entry in entries], dtype=np.int64),
            slice_index=np.zeros(count, dtype=np.int64),
            prefix_hit_tokens=np.zeros(count, dtype=np.int64),
            priority=np.array([entry.get("pr", 0) for entry in entries], dtype=np.int64),
        )

    def block_content(self, row: Row, index: int) -> int:
        """What a block holds; the record numbers the full blocks of each request, equal contents alike."""
        return self.run["reqs"][row.request]["pf"][index]

    def commits(self) -> Iterator[tuple[int, list[int]]]:
        """For each request the tokens of its deliveries in order."""
        if not self.has_rows:
            for request, entry in enumerate(self.run["reqs"]):
                yield request, list(entry["c"])
            return
        delivered: dict[int, list[int]] = {request: [] for request in range(len(self.run["reqs"]))}
        for step in range(self.nsteps):
            for row in self.rows(step):
                if row["c"]:
                    delivered[row["req"]].append(row["c"])
        yield from delivered.items()

    def acceptance(self, requests: Requests) -> AcceptanceRuns:
        """Arrays that make every round commit what was recorded: a delivery of c tokens accepted c - 1 drafts."""
        ends = np.cumsum(requests.output_tokens)
        offsets = ends - requests.output_tokens
        accepted = np.zeros(int(ends[-1]), dtype=np.uint8)
        for request, deliveries in self.commits():
            position = 0
            for tokens in deliveries:
                accepted[offsets[request] + position] = tokens - 1
                position += tokens
        return AcceptanceRuns(offsets, accepted, self._drafted(requests), depth=int(accepted.max(initial=0)) + 1)

    def _drafted(self, requests: Requests) -> np.ndarray | None:
        """What an n-gram drafter proposes at every output position, from the recorded token ids (rule 21)."""
        if self.lookup is None:
            return None
        shortest, longest = self.lookup
        depth = self.settings.num_speculative_tokens
        drafted = []
        for entry, prompt in zip(self.run["reqs"], requests.prompt_tokens.tolist(), strict=True):
            tokens = np.array(entry["tok"], dtype=np.int64)
            drafted.append(lookup_runs(tokens[:prompt], tokens[prompt:], longest, shortest, depth)[0])
        return np.concatenate(drafted)

    def arrivals(self) -> dict[int, list[int]]:
        """Requests by the first step that could see them; closed runs send the next one as one finishes."""
        if self.run.get("C"):
            return {0: list(range(min(self.run["C"], len(self.run["reqs"]))))}
        by_step: dict[int, list[int]] = {}
        for request, entry in enumerate(self.run["reqs"]):
            by_step.setdefault(entry["sa"], []).append(request)
        return by_step


def load(path: Path) -> list[Recording]:
    """The runs of one file."""
    document = json.loads(path.read_text())
    if "cfg" in document:
        spec = document["spec"] or {}
        settings = _settings_of_case(document["cfg"], spec.get("method"))
        lookup = (spec["prompt_lookup_min"], spec["prompt_lookup_max"]) if spec.get("method") == "ngram" else None
        return [Recording(settings, run, True, document["row"], lookup) for run in document["runs"]]
    k = document["k"]
    settings = EngineSettings(
        style="vllm",
        max_num_seqs=document["max_num_seqs"],
        max_num_batched_tokens=document["budget"],
        max_num_scheduled_tokens=document["budget"],
        block_size=16,
        num_gpu_blocks=None,
        max_model_len=2048,
        num_speculative_tokens=k,
        lookahead=k,
        draft_slots=1 if k else 0,
    )
    # Open runs of this format tell arrival times, not the steps that saw them: they cannot be replayed exactly.
    runs = [run for group in ("closed", "low") for run in document.get(group, [])]
    return [Recording(settings, run, False, []) for run in runs]


def _settings_of_case(cfg: dict[str, Any], method: str | None) -> EngineSettings:
    return EngineSettings(
        style="vllm",
        max_num_seqs=cfg["max_num_seqs"],
        max_num_batched_tokens=cfg["budget"],
        max_num_scheduled_tokens=cfg["token_budget"],
        block_size=cfg["block_size"],
        num_gpu_blocks=cfg["blocks"],
        max_model_len=cfg["max_model_len"],
        enable_chunked_prefill=cfg["chunked"],
        long_prefill_token_threshold=cfg["threshold"],
        adaptive_long_prefill_threshold=cfg["adaptive"],
        scheduler_reserve_full_isl=cfg["reserve_full"],
        watermark=cfg["watermark"],
        num_speculative_tokens=cfg["num_spec"],
        lookahead=cfg["lookahead"],
        draft_slots=cfg["draft_slots"],
        draft_schedule=tuple(cfg["lookup"]) if cfg["lookup"] else None,
        serial_drafting=method != "ngram",
        scheduling_policy=cfg["policy"],
        prefix_caching=cfg["prefix_caching"],
        pads_single_tokens=True,
    )


class Replay:
    """Steps our engine through one recording and compares as it goes."""

    def __init__(self, recording: Recording, settle: bool) -> None:
        self.recording = recording
        requests = recording.requests()
        runs = recording.acceptance(requests)
        drafts = recording.settings.num_speculative_tokens
        rounds = RoundCounter(runs, drafts, requests.output_tokens)
        schedule = recording.settings.draft_schedule
        self.core = EngineCore(
            recording.settings,
            requests,
            RoundTables(runs, drafts),
            rounds,
            SegmentLog(),
            policy=ScheduleDrafts(schedule) if schedule else FixedDrafts(drafts),
            content=recording.block_content,
            accept_dummies=True,
            settle=settle,
        )
        self.rounds = rounds
        self.preemptions = 0

    def run(self, outcome: Outcome) -> None:
        """Compare every step; the first difference of the file is kept as text."""
        recording, core = self.recording, self.core
        arrivals = recording.arrivals()
        later = iter(range(recording.run.get("C") or 0, len(recording.run["reqs"])))
        for step in range(recording.nsteps):
            for request in arrivals.get(step, ()):
                core.add(request)
            free_before = self._free_blocks()
            plan = core.plan_step()
            ours = self._composition(plan, free_before)
            core.segments.mark(plan, step)
            self.preemptions += len(plan.preempted)
            committed, finished = core.commit(plan, step)
            ours["cm"] = committed
            ours["fin"] = [row.request for row in finished]
            if recording.has_rows:
                self._pending_after(plan, ours)
            theirs = self._recorded(step)
            outcome.steps += 1
            difference = _difference(ours, theirs)
            if difference is None:
                outcome.equal += 1
            elif outcome.first_difference is None:
                outcome.first_difference = f"{recording.name} step {step}: {difference}"
            if recording.run.get("C"):
                for _ in finished:
                    request = next(later, None)
                    if request is not None:
                        core.add(request)
        if core.has_work() and outcome.first_difference is None:
            outcome.first_difference = f"{recording.name}: work is left after the last recorded step"
            outcome.equal -= 1
        if recording.has_rows and outcome.first_difference is None:
            outcome.first_difference = self._counter_difference()

    def _free_blocks(self) -> int | None:
        if not self.recording.has_rows:
            return None
        scheduler = self.core.scheduler
        return scheduler.blocks.usable - scheduler.blocks.held_by_rows - sum(self.core.settled.blocks_held())

    def _composition(self, plan: StepPlan, free_before: int | None) -> dict[str, Any]:
        """What our plan schedules, in the columns of the record."""
        core = self.core
        scheduler = core.scheduler
        rows = self._settled_rows(plan) + [(s.row, s.tokens, s.start, s.drafts, s.decodes) for s in plan.rows]
        self._scheduled = [row for row, *_ in rows]
        decodes = [entry for entry in rows if entry[4]]
        prefills = [entry for entry in rows if not entry[4]]
        ours: dict[str, Any] = {
            "nd": len(decodes),
            "nv": sum(drafts for _, _, _, drafts, _ in decodes),
            "np": sum(tokens for _, tokens, _, _, _ in prefills),
            "nr": len(prefills),
            "ctx": sum(start for _, _, start, _, _ in decodes),
        }
        if not self.recording.has_rows:
            ours["prefills"] = [[tokens, start] for _, tokens, start, _, _ in prefills]
            return ours
        spec = "nd" in self.recording.row_fields
        ours |= {
            "rows": [(row.request, n, start, *([drafts] if spec else [])) for row, n, start, drafts, _ in rows],
            "fb": free_before,
            "fa": scheduler.blocks.usable - scheduler.blocks.held_by_rows - core.settled.blocks_needed(),
            "run": scheduler.num_running(),
            "wq": len(scheduler.waiting),
            "pre": [[p.row.request, p.computed_tokens, p.pending_drafts] for p in plan.preempted],
            "res": [row.request for row in plan.resumed],
            "new": [row.request for row in plan.admitted],
        }
        if spec:
            ours["prop"] = 0 if plan.dummy_proposals else 1
            ours["k"] = plan.proposes
        return ours

    def _settled_rows(self, plan: StepPlan) -> list[tuple[Row, int, int, int, bool]]:
        if not plan.settled:
            return []
        settled = self.core.settled
        columns = settled.rows(), settled.computed_tokens(), settled.pending_drafts()
        return [(row, 1 + drafts, start, drafts, True) for row, start, drafts in zip(*columns, strict=True)]

    def _pending_after(self, plan: StepPlan, ours: dict[str, Any]) -> None:
        """Drafts pending for each scheduled request after the step; a finished one has none."""
        if "dn" not in self.recording.row_fields:
            return
        settled = self.core.settled
        pending = {id(row): drafts for row, drafts in zip(settled.rows(), settled.pending_drafts(), strict=True)}
        ours["dn"] = [pending.get(id(row), row.pending_drafts) for row in self._scheduled]

    def _recorded(self, step: int) -> dict[str, Any]:
        recording = self.recording
        theirs: dict[str, Any] = {name: recording.column(name, step) for name in ("nd", "nv", "np", "nr", "ctx", "cm")}
        if not recording.has_rows:
            theirs["prefills"] = recording.run["prefills"].get(str(step), [])
            return theirs
        rows = recording.rows(step)
        spec = "nd" in recording.row_fields
        events = recording.run["events"].get(str(step), {})
        theirs |= {name: recording.column(name, step) for name in ("fb", "fa", "run", "wq")}
        theirs["rows"] = [(row["req"], row["n"], row["start"], *([row["nd"]] if spec else [])) for row in rows]
        theirs |= {name: events.get(name, []) for name in ("pre", "res", "new")}
        theirs["fin"] = [request for request, _ in events.get("fin", [])]
        if spec:
            theirs |= {name: recording.column(name, step) for name in ("prop", "k")}
            theirs["dn"] = [row["dn"] for row in rows]
        return theirs

    def _counter_difference(self) -> str | None:
        """The engine's own counters over the run (rule 23); accepted tokens past the end are not in the record."""
        counts = self.rounds.counts(self.core.committed_by_rounds)
        ours = {
            "spec_decode_num_drafts": counts.num_drafts,
            "spec_decode_num_draft_tokens": counts.draft_tokens,
            "num_preemptions": self.preemptions,
            "prefix_cache_queries": self.core.scheduler.blocks.queried_tokens,
            "prefix_cache_hits": self.core.scheduler.blocks.hit_tokens,
        }
        recorded = self.recording.run["counters"]
        difference = _difference(ours, {name: recorded.get(name, 0) for name in ours})
        return difference and f"{self.recording.name} counters: {difference}"


def _difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    for name, value in theirs.items():
        if ours[name] != value:
            return f"{name}: ours {ours[name]}, recorded {value}"
    return None


def replay_file(path: Path, settle: bool = True) -> Outcome:
    """Replay all runs of a file."""
    outcome = Outcome()
    for recording in load(path):
        outcome.runs += 1
        Replay(recording, settle).run(outcome)
    return outcome


def main(arguments: list[str]) -> int:
    """Print a line a file; 0 only if all steps of all files are equal."""
    if not arguments:
        print(__doc__)
        return 2
    all_equal = True
    for argument in arguments:
        outcome = replay_file(Path(argument))
        equal = outcome.first_difference is None
        all_equal &= equal
        print(f"{argument}: {outcome.runs} runs, {outcome.steps} steps compared, {outcome.equal} equal")
        if not equal:
            print(f"  first difference: {outcome.first_difference}")
    return 0 if all_equal else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
