"""Every recorded step of the real vLLM, replayed through the scheduler that `specsim run` uses."""

import importlib.util
import sys
from pathlib import Path

import pytest

from sim.engine import core, settled, vllm_scheduler

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
    assert len(FILES) >= 28


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


def _patch_settings(monkeypatch, **changes):
    original = truth._settings_of_case

    def changed(cfg):
        import dataclasses

        return dataclasses.replace(original(cfg), **changes)

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
    def oldest(self, row, tokens, plan):
        while not self.blocks.extend(row, tokens, self.free_blocks()):
            victim = self.running.pop(0)
            self._preempt(victim, plan)
            if victim is row:
                return False
        return True

    monkeypatch.setattr(vllm_scheduler.VllmScheduler, "_extend_or_preempt", oldest)
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


def test_a_wrong_block_count_in_the_arrays_shows(monkeypatch):
    original = settled.SettledRows.blocks_needed
    monkeypatch.setattr(settled.SettledRows, "blocks_needed", lambda self: original(self) + bool(self.count))
    assert _differing_files(["preempt24_k3"]) == ["preempt24_k3"]


def test_the_command_says_what_it_compared(capsys):
    assert truth.main([str(ROOT / "tests" / "truth" / "stop_k3.json")]) == 0
    assert "3 runs, 141 steps compared, 141 equal" in capsys.readouterr().out
