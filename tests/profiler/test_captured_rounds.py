"""Rounds whose passes are replayed graphs give the same tokens: every input is where the graph reads it."""

import pytest
import torch
from small_models import cache_of, decoded, decoder, disturbed_copy, eagle_for, prompts_of, random_dims

from profiler.attention import reference
from profiler.clock import CpuClock, Program
from profiler.kv_cache import PAGE
from profiler.passes import CapturedPasses


class ReplayingClock(CpuClock):
    """A captured program runs again on the tensors that it was captured with, and writes where it wrote before."""

    def __init__(self):
        super().__init__()
        self.captures = self.replays = 0

    def captured(self, program):
        self.captures += 1
        outputs = program()

        def replay():
            self.replays += 1
            for old, new in zip(outputs, program(), strict=True):
                old.copy_(new)

        return Program(replay, outputs)


class FollowingAttention:
    """Reads lengths on the device when it runs, as kernels over pages do."""

    name, page, paged, needs_mask, follows_lengths = "following", PAGE, True, False, True

    def prepare(self, *_):
        pass

    def __call__(self, query, cache, layer, segment):
        return reference(query, cache, layer, segment).to(query.dtype)


@pytest.mark.parametrize("kind", ["draft", "eagle"])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_replayed_rounds_are_lossless(kind, k):
    torch.set_num_threads(1)
    with torch.inference_mode():
        dims = random_dims(2)
        target = decoder(dims, "fp64", 2)
        draft = eagle_for(target, "fp64", 2) if kind == "eagle" else disturbed_copy(target, dims, "fp64", 102)
        prompts = prompts_of(3, 6, dims.vocab, 1)
        plain, _ = decoded(target, None, "fp64", 3, 0, prompts, 16)
        target.attention = draft.attention = FollowingAttention()
        clock = ReplayingClock()
        passes = CapturedPasses(clock, cache_of(dims, "fp64", 3, True).per_request)
        replayed, counts = decoded(target, draft, "fp64", 3, k, prompts, 16, paged=True, passes=passes)
    assert replayed == plain
    assert clock.captures == 1 + min(k, 2)  # verification, a first pass, a narrow one
    assert clock.replays > clock.captures
    assert kind == "eagle" or k == 0 or sum(counts) > 0
