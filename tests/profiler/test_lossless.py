"""Speculative decoding gives what plain decoding gives: token for token in float64, up to near-ties below it."""

import pytest
import torch
from small_models import decoded, decoder, disturbed_copy, eagle_for, prompts_of, random_dims

from profiler.attention import SdpaAttention

WANTED = 16


@pytest.fixture(autouse=True)
def _quiet():
    torch.set_num_threads(1)
    with torch.inference_mode():
        yield


def pair(seed, dtype):
    dims = random_dims(seed)
    target = decoder(dims, dtype, seed)
    return target, disturbed_copy(target, dims, dtype, 100 + seed)


@pytest.mark.parametrize("seed", range(10))
def test_greedy_speculation_equals_plain_decoding_in_float64(seed):
    target, draft = pair(seed, "fp64")
    batch = 1 + seed % 8
    prompts = prompts_of(batch, 5 + seed, target.dims.vocab, seed)
    plain, _ = decoded(target, None, "fp64", batch, 0, prompts, WANTED)
    accepted = []
    for k in range(1, 8):
        speculative, counts = decoded(target, draft, "fp64", batch, k, prompts, WANTED)
        assert speculative == plain
        accepted += [count / k for count in counts]
    assert 0 < sum(accepted) < len(accepted)  # some drafts were accepted and some rejected


@pytest.mark.parametrize("batch", range(1, 9))
def test_any_batch_size_is_lossless(batch):
    target, draft = pair(batch, "fp64")
    prompts = prompts_of(batch, 7, target.dims.vocab, batch)
    plain, _ = decoded(target, None, "fp64", batch, 0, prompts, WANTED)
    assert decoded(target, draft, "fp64", batch, 3, prompts, WANTED)[0] == plain


@pytest.mark.parametrize("seed", range(3))
def test_an_eagle_type_head_is_lossless(seed):
    target, _ = pair(seed, "fp64")
    draft = eagle_for(target, "fp64", seed)
    prompts = prompts_of(3, 6, target.dims.vocab, seed)
    plain, _ = decoded(target, None, "fp64", 3, 0, prompts, WANTED)
    assert decoded(target, draft, "fp64", 3, 4, prompts, WANTED)[0] == plain


def test_pages_in_any_order_change_nothing():
    target, draft = pair(2, "fp64")
    prompts = prompts_of(4, 9, target.dims.vocab, 1)
    plain, _ = decoded(target, None, "fp64", 4, 0, prompts, WANTED)
    target.attention = draft.attention = SdpaAttention(paged=True)
    assert decoded(target, draft, "fp64", 4, 3, prompts, WANTED, paged=True)[0] == plain


def test_a_draft_that_is_the_target_is_always_accepted():
    target, _ = pair(1, "fp64")
    prompts = prompts_of(2, 6, target.dims.vocab, 1)
    _, counts = decoded(target, target, "fp64", 2, 4, prompts, WANTED)
    assert set(counts) == {4}


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_lower_precision_differs_only_where_the_two_best_logits_are_within_rounding(dtype):
    equal = ties = 0
    for seed in range(4):
        target, draft = pair(seed, dtype)
        prompts = prompts_of(4, 6, target.dims.vocab, seed)
        plain, _ = decoded(target, None, dtype, 4, 0, prompts, 32)
        speculative, _ = decoded(target, draft, dtype, 4, 3, prompts, 32)
        for row, (one, two) in enumerate(zip(plain, speculative, strict=True)):
            if one == two:
                equal += 1
                continue
            place = next(i for i, tokens in enumerate(zip(one, two, strict=True)) if tokens[0] != tokens[1])
            gap, scale = top_two_gap(target, prompts[row], one[:place], dtype)
            assert gap <= 4 * torch.finfo(DTYPE[dtype]).eps * scale
            ties += 1
    assert equal > ties
    print(f"{dtype}: {equal} of {equal + ties} texts equal, {ties} part at a near-tie")


DTYPE = {"fp32": torch.float32, "bf16": torch.bfloat16}


def top_two_gap(target, prompt, tokens, dtype):
    """The distance of the two best logits after a text, and the size of the largest."""
    from small_models import cache_of

    from profiler.batch import make_batch

    text = torch.cat([prompt, torch.tensor(tokens, dtype=torch.long)])
    cache = cache_of(target.dims, dtype, 1)
    batch = make_batch(cache, [(len(text), 0, torch.zeros(1, dtype=torch.long))], with_mask=True)
    logits = target.logits(target.run_layers(text, batch, cache)[-1:]).float()
    best, second = logits.topk(2).values[0].tolist()
    return best - second, logits.abs().max().item()
