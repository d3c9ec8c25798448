"""Attention back ends against float64 on the last rows, and the bookkeeping of pages."""

import sys

import pytest
import torch

from profiler import attention
from profiler.attention import FlexAttention, SdpaAttention, choose_attention, error_of, reference
from profiler.batch import make_batch, set_lengths
from profiler.errors import ProfileError
from profiler.kv_cache import PAGE, make_cache

DTYPES = [torch.float64, torch.float32, torch.bfloat16]


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("paged", "page"), [(False, 16), (True, 16), (True, 256)])
def test_sdpa_agrees_with_float64(dtype, paged, page):
    back_end = SdpaAttention(paged)
    back_end.page = page
    assert error_of(back_end, dtype, "cpu") <= attention.TOLERANCE[dtype]


@pytest.mark.filterwarnings("ignore:.*flex_attention.*")
def test_flex_agrees_with_float64():
    assert error_of(FlexAttention(compiled=False), torch.float32, "cpu") <= attention.TOLERANCE[torch.float32]


def test_the_reference_is_aligned_to_the_lower_right():
    """The first of two new rows sees all old keys and itself, not the second."""
    cache = make_cache(1, 1, 4, 1, 16, dtype=torch.float64, device="cpu", paged=False, seed=1)
    batch = make_batch(cache, [(2, 0, torch.tensor([3]))], with_mask=True)
    query = torch.zeros(2, 1, 4, dtype=torch.float64)
    values = cache.layers[0][1]
    out = reference(query, cache, 0, batch.segments[0])
    assert torch.allclose(out[0, 0], values[:4, 0].mean(0))
    assert torch.allclose(out[1, 0], values[:5, 0].mean(0))


def test_a_wrong_back_end_is_left_out(monkeypatch):
    class UpperLeft(SdpaAttention):
        def __call__(self, query, cache, layer, segment):
            segment.mask = torch.tril(torch.ones(segment.query, segment.most, dtype=torch.bool))
            return super().__call__(query, cache, layer, segment)

    assert error_of(UpperLeft(), torch.float32, "cpu") > 0.01
    monkeypatch.setattr(attention, "SdpaAttention", UpperLeft)
    with pytest.raises(ProfileError, match=r"none works here \(sdpa: differs from float64 by"):
        choose_attention("sdpa", torch.float32, "cpu")


def test_a_back_end_that_this_machine_lacks_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "flashinfer", None)
    with pytest.raises(ProfileError, match=r"none works here \(flashinfer: ModuleNotFoundError"):
        choose_attention("flashinfer", torch.float32, "cpu")
    with pytest.raises(ProfileError, match="unknown 'magic'"):
        choose_attention("magic", torch.float32, "cpu")


def test_pages_are_permuted_and_each_has_one_owner():
    cache = make_cache(1, 1, 4, 4, 40, dtype=torch.float32, device="cpu", paged=True, seed=1)
    numbers = cache.table.flatten().tolist()
    assert sorted(numbers) == list(range(12))
    assert numbers != sorted(numbers)


def test_a_small_pool_repeats_its_pages():
    cache = make_cache(1, 1, 4, 8, 64, dtype=torch.float32, device="cpu", paged=True, seed=1, pool_tokens=128)
    assert len(cache.layers[0][0]) == 128
    assert set(cache.table.flatten().tolist()) == set(range(128 // PAGE))


def test_slots_of_a_slice_follow_each_other():
    cache = make_cache(1, 1, 4, 3, 20, dtype=torch.float32, device="cpu", paged=False, seed=1)
    slots = cache.slots(torch.tensor([0, 1, 1]), torch.tensor([5, 0, 17]))
    assert slots.tolist() == [5, cache.per_request, cache.per_request + 17]


@pytest.mark.parametrize("paged", [False, True])
def test_lengths_that_are_moved_in_place_are_those_of_a_new_batch(paged):
    cache = make_cache(1, 1, 4, 3, 64, dtype=torch.float32, device="cpu", paged=paged, seed=1)
    moved = make_batch(cache, [(3, 0, torch.tensor([1, 2, 3]))], with_mask=False, most=64)
    set_lengths(moved, cache, torch.tensor([40, 7, 20]))
    fresh = make_batch(cache, [(3, 0, torch.tensor([40, 7, 20]))], with_mask=False, most=64)
    assert moved.positions.equal(fresh.positions)
    assert moved.slots.equal(fresh.slots)
    assert moved.segments[0].used.equal(fresh.segments[0].used)
