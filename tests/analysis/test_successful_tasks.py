import numpy as np
import pytest

from sim.analysis.cost import gpu_cost_usd, successful_tasks
from sim.inputs.scenario import Price

SLICES = np.array([0, 0, 1, 1, 1])
IN_TIME = np.array([True, False, True, True, False])


def test_each_slice_succeeds_at_its_own_rate():
    assert successful_tasks(SLICES, IN_TIME, [0.5, 0.25, None]) == pytest.approx(1 * 0.5 + 2 * 0.25)


def test_a_rate_is_needed_only_where_requests_completed():
    assert successful_tasks(SLICES, IN_TIME, [0.5, None]) is None
    assert successful_tasks(SLICES, np.zeros(5, bool), [0.5, None]) is None
    assert successful_tasks(SLICES[:2], IN_TIME[:2], [0.5, None]) == pytest.approx(0.5)


def test_all_gpus_are_paid_for_the_whole_time():
    assert gpu_cost_usd(1800, 3, Price(usd_per_gpu_hour=4, gpus_per_replica=2)) == pytest.approx(12.0)
