"""Prompt lookup (n-gram) drafting over token ids: what would be drafted at every output position, and accepted.

At output position p the known tokens are prompt + output[:p]. The longest n in lookup_max .. lookup_min whose last n
known tokens occurred before decides; of those places the earliest one; the tokens after it are drafted, at most `depth`
and up to the end of the known tokens (vLLM's `ngram` method).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

MOST_DRAFTS = 255  # what one byte can count


def lookup_runs(prompt: Ints, output: Ints, lookup_max: int, lookup_min: int, depth: int) -> tuple[Bytes, Bytes]:
    """(drafted, accepted), one entry per output position p, the index of the first drafted token.

    drafted: tokens proposed there, 0 without a match; accepted <= drafted: how many of them in a row are output[p:].
    The output is taken as the target's own (greedy) text. 1 <= lookup_min <= lookup_max, 1 <= depth <= 255.
    """
    if not 1 <= lookup_min <= lookup_max:
        raise ValueError(f"lookup of {lookup_min} to {lookup_max} tokens")
    if not 1 <= depth <= MOST_DRAFTS:
        raise ValueError(f"{depth} drafts, 1 to {MOST_DRAFTS} can be counted")
    tokens = np.concatenate([prompt, output])
    known = len(prompt) + np.arange(len(output))  # how many tokens are known; also the place of the first draft
    copied_from = _copy_places(tokens, known, lookup_max, lookup_min)
    found = copied_from >= 0
    drafted = np.where(found, np.minimum(known - copied_from, depth), 0)
    accepted = np.zeros(len(output), dtype=np.int64)
    agrees = found
    for ahead in range(depth):
        agrees = agrees & (ahead < drafted) & (known + ahead < len(tokens))
        rows = np.flatnonzero(agrees)
        if not len(rows):
            break
        agrees[rows] = tokens[copied_from[rows] + ahead] == tokens[known[rows] + ahead]
        accepted += agrees
    return drafted.astype(np.uint8), accepted.astype(np.uint8)


def _copy_places(tokens: Ints, known: Ints, lookup_max: int, lookup_min: int) -> Ints:
    """Where the drafts of each row are copied from; -1 without a match.

    An n-gram's first place in the whole text is also its first place in any text that ends behind it, so one sort per n
    serves all positions. An n-gram is named by its first n - 1 tokens' name and its last token.
    """
    places = np.full(len(known), -1)
    _, token_names = np.unique(tokens, return_inverse=True)
    names = token_names
    for n in range(1, min(lookup_max, len(tokens)) + 1):
        if n > 1:
            names = names[:-1] * (len(tokens) + 1) + token_names[n - 1 :]
        _, firsts, names = np.unique(names, return_index=True, return_inverse=True)
        rows = np.flatnonzero(known >= n)
        if n < lookup_min or not len(rows):
            continue
        starts = known[rows] - n
        first_places = firsts[names[starts]]
        earlier = first_places < starts
        places[rows[earlier]] = first_places[earlier] + n
    return places
