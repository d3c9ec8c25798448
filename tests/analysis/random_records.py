"""A hypothesis strategy for consistent records: any parts, any stories, one or two replicas, both kinds of delivery."""

import numpy as np
from hand_made import records, steps, story
from hypothesis import strategies as st

STEPS = 24  # longer than the longest story


@st.composite
def phase_letters(draw):
    """Prefill with mishaps, the first token, then rounds with the same mishaps; ends with a delivery."""
    runs = draw(st.lists(st.sampled_from(["D", "DD", "DDD", "d", "xPF", "xxpPF", "xF"]), max_size=3))
    text = draw(st.sampled_from(["F", "PF", "PpF", "PxF", "PxxPPF"])) + "".join(runs)
    return text if text[-1] in "FD" else text + "D"


@st.composite
def made_records(draw):
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))

    def replica():
        parts = rng.uniform(0, 20, (STEPS, 6)) * rng.integers(0, 2, (STEPS, 6))
        parts[:, 1] += parts[:, 2] + 0.1  # a target pass is no cheaper with its prefill rows, and never free
        return steps(parts, start_ms=rng.uniform(0, 20))

    replicas = [replica() for _ in range(draw(st.integers(1, 2)))]
    stories = []
    for phases in draw(st.lists(phase_letters(), min_size=1, max_size=4)):
        first = draw(st.integers(0, STEPS - len(phases)))
        where = draw(st.integers(0, len(replicas) - 1))
        arrival_ms = replicas[where].start_ms[first] - rng.uniform(0, 20)
        stories.append(story(phases, arrival_ms, first, where, own_prefill_ms=rng.uniform(0, 20)))
    if draw(st.booleans()):
        stories.append(story(""))
    return records(replicas, stories, async_delivery=draw(st.booleans())), stories
