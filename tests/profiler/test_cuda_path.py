"""The CUDA path as far as a machine without a GPU allows: events, graphs, one pool, what fails and what is lost."""

import sys
import weakref

import pytest
import torch
from fake_cuda import EAGER_MS, GRAPH_MS, FakeCuda

from profiler.clock import CpuClock, CudaClock, told_memory
from profiler.errors import DeviceLostError, OutOfMemoryError
from profiler.passes import CapturedPasses
from profiler.plan import make_plan
from profiler.point import Point
from profiler.sensors import FAULTS, gpu_sensors
from profiler.session import make_setup
from profiler.timing import Settings
from profiler.torch_device import TorchDevice


def test_a_program_is_warmed_on_a_side_stream_and_captured_into_the_shared_pool():
    cuda = FakeCuda()
    clock = CudaClock(cuda)
    calls = []
    program = clock.captured(lambda: calls.append("call") or "outputs")
    assert len(calls) == 4  # three to warm up, one that is captured
    assert program.outputs == "outputs"
    assert program.why_eager is None
    assert cuda.log == [
        "pool",
        "side waits for main",
        "on side",
        "off",
        "main waits for side",
        "synchronize",
        "capture",
    ]
    program.call()
    assert cuda.log[-1] == "replay"
    clock.captured(lambda: None)
    assert cuda.log.count("pool") == 1


def test_a_graph_keeps_the_tensors_that_it_reads():
    inputs = torch.zeros(3)
    alive = weakref.ref(inputs)
    call = CudaClock(FakeCuda()).captured(lambda read=inputs: read.sum()).call
    del inputs
    assert alive() is not None
    del call
    assert alive() is None


def test_what_cannot_be_captured_runs_eagerly_and_says_why():
    clock = CudaClock(FakeCuda(fails="operation not permitted when stream is capturing"))
    program = clock.captured(lambda: 3)
    assert program.why_eager == "operation not permitted when stream is capturing"
    assert program.call() == 3
    assert clock.not_captured() == [program.why_eager]
    assert clock.not_captured() == []


def test_a_sticky_error_loses_the_device():
    clock = CudaClock(FakeCuda(fails="CUDA error: an illegal memory access was encountered"))
    with pytest.raises(DeviceLostError, match="illegal memory access"):
        clock.captured(lambda: None)


def test_events_stand_around_each_call_and_one_synchronisation_ends_a_block():
    cuda = FakeCuda()
    clock = CudaClock(cuda)
    times = clock.block(lambda: cuda.kernel(EAGER_MS), lambda: cuda.kernel(100.0))(5)
    assert times == [EAGER_MS] * 5
    assert cuda.log == ["pool", "synchronize"]


def test_a_replayed_graph_is_timed_as_such():
    cuda = FakeCuda()
    clock = CudaClock(cuda)
    program = clock.captured(lambda: None)
    assert clock.block(program.call, None)(3) == [GRAPH_MS] * 3


def test_the_wall_is_read_with_an_idle_device_around_each_call():
    cuda = FakeCuda()
    assert len(CudaClock(cuda).wall_block(lambda: None, None)(2)) == 2
    assert cuda.log.count("synchronize") == 4


def test_passes_of_a_round_are_captured_once_each_and_replayed():
    cuda = FakeCuda()
    passes = CapturedPasses(CudaClock(cuda), 64)
    made = []
    for _ in range(3):
        assert passes.run(("verify",), lambda: made.append(1) or "logits") == "logits"
    assert len(made) == 4
    assert cuda.log.count("capture") == 1
    assert cuda.log.count("replay") == 3


def test_running_out_of_memory_is_told_apart_from_other_failures():
    with pytest.raises(OutOfMemoryError):
        told_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
    with pytest.raises(OutOfMemoryError):
        told_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    told_memory(RuntimeError("shapes do not match"))


class Throttled(CpuClock):
    """A device that says for a while that it is too hot."""

    def __init__(self, hot):
        super().__init__()
        self.hot, self.asked = hot, 0

    def state(self):
        self.asked += 1
        return {"faults": ["hw_thermal_slowdown"] if self.asked <= self.hot else []}


def test_a_throttled_point_is_measured_again():
    plan = make_plan(make_setup("smoke", device="cpu"))
    clock = Throttled(hot=3)
    device = TorchDevice(plan, clock)
    made = []
    device._once, once = lambda *a: made.append(1) or once(*a), device._once
    settings = Settings(min_ms=1, min_n=3, max_s=0.05, warm_ms=1)
    measurement = device.measure(Point("head", "4q1"), settings)
    assert len(made) == 3
    assert measurement.extra["after"] == {"faults": []}


@pytest.mark.parametrize(("fails", "says"), [(None, "sdpa sees no lengths"), ("no capture here", "no capture here")])
def test_a_point_that_was_to_be_a_graph_says_why_it_is_none(fails, says):
    cuda = FakeCuda(fails=fails)
    device = TorchDevice(make_plan(make_setup("smoke", device="cpu")), CudaClock(cuda))
    point = Point("head", "4q1", "graph") if fails else Point("draft_narrow", "4q1s16", "graph")
    device._clock.block = lambda call, before: lambda n: [call() is None or 1.0] * n
    measurement = device.measure(point, Settings(min_ms=1, min_n=3, max_s=0.05, warm_ms=1))
    assert says in measurement.extra["why_eager"]


def test_a_power_cap_is_no_fault():
    assert 0x04 not in FAULTS


def test_without_nvml_times_are_taken_all_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    read, about = gpu_sensors()
    assert read is None
    assert about["sensors"].startswith("none: ")
