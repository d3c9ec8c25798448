"""Every recorded step of the real vLLM, replayed through the scheduler that `specsim run` uses."""

import dataclasses
import importlib.util
import sys
from pathlib import Path

import pytest

from sim.engine import core, policies, prefix_blocks, settled, vllm_scheduler

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tests" / "truth").glob("*.json"))


def _benchmark():
    spec = importlib.util.spec_from_file_location("scheduling_truth", ROOT / "benchmarks" / "scheduling_truth.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


truth = _benchmark()


def test_records_are_there():
    assert len(FILES) >= 51


@pytest.mark.parametrize("settle", [True, False], ids=["settled", "row by row"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_step_is_equal(path, settle):
    outcome = truth.replay_file(path, settle)
    assert outcome.first_difference is None
    assert outcome.equal == outcome.steps > 0


def _differing_files(names):
    paths = [path for path in FILES if path.stem in names]
    assert len(paths) == len(names)
    return [path.stem for path in paths if truth.replay_file(path).first_difference is not None]


def _differing_or_failing(names):
    """As `_differing_files`; blocks that do not exist may also run out."""
    found = []
    for name in sorted(names):
        try:
            found += _differing_files([name])
        except KeyError:
            found.append(name)
    return found


def _patch_settings(monkeypatch, **changes):
    original = truth._settings_of_case

    def changed(cfg, method):
        return dataclasses.replace(original(cfg, method), **changes)

    monkeypatch.setattr(truth, "_settings_of_case", changed)


# A rule left out must show: otherwise the comparison proves nothing.


def test_without_draft_slots_the_budget_runs_differ(monkeypatch):
    _patch_settings(monkeypatch, draft_slots=0)
    assert _differing_files(["budget_k3", "chunk_k3"]) == ["budget_k3", "chunk_k3"]


def test_without_lookahead_the_block_runs_differ(monkeypatch):
    _patch_settings(monkeypatch, lookahead=0)
    assert _differing_files(["preempt14_k3", "preempt24_k3"]) == ["preempt14_k3", "preempt24_k3"]


def test_without_the_full_sequence_check_admission_differs(monkeypatch):
    _patch_settings(monkeypatch, scheduler_reserve_full_isl=False)
    assert _differing_files(["preempt_chunk_k0"]) == ["preempt_chunk_k0"]


def test_without_the_watermark_admission_differs(monkeypatch):
    _patch_settings(monkeypatch, watermark=0.0)
    assert _differing_files(["preempt_wm_k3"]) == ["preempt_wm_k3"]


def test_without_the_threshold_chunks_differ(monkeypatch):
    _patch_settings(monkeypatch, long_prefill_token_threshold=0)
    assert _differing_files(["chunk_k0", "adapt_k0"]) == ["adapt_k0", "chunk_k0"]


def test_the_oldest_as_victim_differs(monkeypatch):
    monkeypatch.setattr(vllm_scheduler.VllmScheduler, "_victim", lambda self: self.running[0])
    assert _differing_files(["preempt24_k0"]) == ["preempt24_k0"]


def test_re_entering_at_the_tail_differs(monkeypatch):
    original = vllm_scheduler.VllmScheduler._preempt

    def to_the_tail(self, victim, plan):
        original(self, victim, plan)
        self.waiting.append(self.waiting.popleft())

    monkeypatch.setattr(vllm_scheduler.VllmScheduler, "_preempt", to_the_tail)
    assert _differing_files(["preempt24_k0"]) == ["preempt24_k0"]


def test_admitting_after_a_preemption_differs(monkeypatch):
    def schedule(self):
        plan = original(self)
        if plan.preempted:
            budgets = vllm_scheduler.Budgets(self.settings)
            budgets.take(sum(scheduled.tokens for scheduled in plan.rows), len(plan.rows))
            self._admit(plan, budgets)
        return plan

    original = vllm_scheduler.VllmScheduler.schedule
    monkeypatch.setattr(vllm_scheduler.VllmScheduler, "schedule", schedule)
    assert _differing_files(["preempt14_k3", "preempt_chunk_k3"]) == ["preempt14_k3", "preempt_chunk_k3"]


def test_drafting_near_the_model_length_differs(monkeypatch):
    monkeypatch.setattr(core.EngineCore, "_too_close_to_the_end", lambda self, plan: False)
    assert _differing_files(["maxlen_k3"]) == ["maxlen_k3"]


def test_k_from_decode_rows_alone_differs(monkeypatch):
    def decodes(self, core, plan):
        return self.steady(plan.settled + sum(scheduled.decodes for scheduled in plan.rows))

    monkeypatch.setattr(policies.ScheduleDrafts, "choose", decodes)
    assert _differing_files(["dyn_dm", "dyn_dm_gap", "mix2"]) == ["dyn_dm", "dyn_dm_gap", "mix2"]


def test_the_last_running_as_victim_by_priority_differs(monkeypatch):
    monkeypatch.setattr(vllm_scheduler.VllmScheduler, "_victim", lambda self: self.running[-1])
    assert _differing_files(["prio_preempt_k0", "prio_preempt_k3"]) == ["prio_preempt_k0", "prio_preempt_k3"]


def test_first_come_first_served_differs_where_priorities_are_given(monkeypatch):
    _patch_settings(monkeypatch, scheduling_policy="fcfs")
    assert _differing_files(["prio_k0", "prio_k3"]) == ["prio_k0", "prio_k3"]


def test_a_budget_that_is_not_given_back_differs(monkeypatch):
    monkeypatch.setattr(vllm_scheduler.Budgets, "give_back", lambda self, tokens: None)
    assert _differing_files(["mix7"]) == ["mix7"]


def test_blocks_that_nobody_finds_differ(monkeypatch):
    monkeypatch.setattr(prefix_blocks.PrefixBlocks, "find_cached", lambda self, row: 0)
    assert _differing_files(["prefix_k0", "mix1"]) == ["mix1", "prefix_k0"]


def test_a_whole_prompt_from_the_cache_differs(monkeypatch):
    original = prefix_blocks.PrefixBlocks.find_cached

    def whole(self, row):
        row.known_tokens += 1
        cached = original(self, row)
        row.known_tokens -= 1
        return cached

    monkeypatch.setattr(prefix_blocks.PrefixBlocks, "find_cached", whole)
    assert _differing_or_failing(["mix2"]) == ["mix2"]


def test_hits_in_the_free_queue_that_cost_nothing_differ(monkeypatch):
    def free_of_charge(self, row, needed, free):
        return max(needed) - len(row.hits) <= free

    monkeypatch.setattr(prefix_blocks.PrefixBlocks, "admits", free_of_charge)
    assert _differing_or_failing(["prefix_preempt_k0", "mix2"]) == ["mix2", "prefix_preempt_k0"]


def test_freed_blocks_at_the_front_of_the_queue_differ(monkeypatch):
    original = prefix_blocks.PrefixBlocks.release

    def to_the_front(self, row):
        blocks = list(row.block_ids)
        original(self, row)
        for block in blocks:
            if block in self._free:
                self._free.move_to_end(block, last=False)

    monkeypatch.setattr(prefix_blocks.PrefixBlocks, "release", to_the_front)
    assert _differing_files(["prefix_preempt_k3", "mix1"]) == ["mix1", "prefix_preempt_k3"]


def test_a_last_prompt_token_without_placeholders_differs(monkeypatch):
    _patch_settings(monkeypatch, pads_single_tokens=False)
    assert _differing_files(["prefix_k3"]) == ["prefix_k3"]


def test_lookups_past_the_model_length_differ(monkeypatch):
    def uncapped(self, row, most):
        if self._drafted is None:
            return most
        return min(self._drafted[row.flat_offset + row.known_tokens - row.prompt_tokens], most)

    monkeypatch.setattr(core.EngineCore, "_proposed", uncapped)
    assert _differing_files(["maxlen_ng"]) == ["maxlen_ng"]


def test_a_wrong_block_count_in_the_arrays_shows(monkeypatch):
    original = settled.SettledRows.blocks_needed
    monkeypatch.setattr(settled.SettledRows, "blocks_needed", lambda self: original(self) + bool(self.count))
    assert _differing_files(["preempt24_k3"]) == ["preempt24_k3"]


def test_the_command_says_what_it_compared(capsys):
    assert truth.main([str(ROOT / "tests" / "truth" / "stop_k3.json")]) == 0
    assert "3 runs, 141 steps compared, 141 equal" in capsys.readouterr().out
