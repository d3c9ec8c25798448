"""Clocks: how calls are timed, captured and freed on a CPU and on a CUDA GPU, behind one interface.

A GPU's own time is taken by events around each call; a call that asks the device for numbers is timed on the wall.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from .errors import DeviceLostError, OutOfMemoryError

Call = Callable[[], object]
STICKY = ("illegal memory access", "unspecified launch failure", "device-side assert", "misaligned address")


class Program(NamedTuple):
    """Something that can be called again and again. why_eager: why it is not captured where it should have been."""

    call: Call
    outputs: object
    why_eager: str | None = None


class Clock(Protocol):
    """How one device times calls."""

    def block(self, call: Call, before: Call | None) -> Callable[[int], Sequence[float]]:
        """A function of n that makes n calls and returns the device's milliseconds of each; `before` is not timed."""

    def wall_block(self, call: Call, before: Call | None) -> Callable[[int], Sequence[float]]:
        """The same on the wall, with the device idle before and after."""

    def captured(self, program: Call) -> Program:
        """A program as a graph, where the device has graphs; else as it is."""

    def not_captured(self) -> list[str]:
        """Why programs could not be captured since this was last asked."""

    def state(self) -> dict[str, Any]:
        """What may disturb a measurement: load, clocks, temperature."""

    def free(self) -> None:
        """Give memory of past points back."""


class CpuClock:
    """A clock read before and after each call.

    With one thread it counts the time for which the thread ran, so that other programs on the machine are not measured
    with it; with more threads, real time. A CPU works on what it is given at once: its wall is no other clock.
    """

    def __init__(self, threads: int = 1) -> None:
        self.now_ns = time.thread_time_ns if threads == 1 else time.perf_counter_ns
        self.name = "time of the thread" if threads == 1 else "real time"

    def block(self, call: Call, before: Call | None) -> Callable[[int], Sequence[float]]:
        """See `Clock`."""

        def timed(n: int) -> list[float]:
            times = []
            for _ in range(n):
                if before is not None:
                    before()
                start = self.now_ns()
                call()
                times.append((self.now_ns() - start) * 1e-6)
            return times

        return timed

    wall_block = block

    def captured(self, program: Call) -> Program:
        """A CPU has no graphs."""
        return Program(program, None)

    def not_captured(self) -> list[str]:
        """Nothing was to be captured."""
        return []

    def state(self) -> dict[str, Any]:
        """The load average over the last minute."""
        return {"load": round(os.getloadavg()[0], 2)}

    def free(self) -> None:
        """Nothing is kept."""


class CudaClock:
    """Events around each call, one synchronisation a block, graphs in one shared memory pool.

    cuda: the module torch.cuda, or what stands in for it in a test. sensors: clocks and throttle reasons, read only.
    """

    def __init__(self, cuda: Any, sensors: Callable[[], dict[str, Any]] | None = None, warm_calls: int = 3) -> None:
        self._cuda, self._sensors, self._warm_calls = cuda, sensors, warm_calls
        self._pool = cuda.graph_pool_handle()
        self._failures: list[str] = []

    def block(self, call: Call, before: Call | None) -> Callable[[int], Sequence[float]]:
        """See `Clock`."""

        def timed(n: int) -> list[float]:
            marks = []
            for _ in range(n):
                if before is not None:
                    before()
                start, end = (self._cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                call()
                end.record()
                marks.append((start, end))
            self._synchronize()
            return [start.elapsed_time(end) for start, end in marks]

        return timed

    def wall_block(self, call: Call, before: Call | None) -> Callable[[int], Sequence[float]]:
        """See `Clock`."""

        def timed(n: int) -> list[float]:
            times = []
            for _ in range(n):
                if before is not None:
                    before()
                self._synchronize()
                start = time.perf_counter_ns()
                call()
                self._synchronize()
                times.append((time.perf_counter_ns() - start) * 1e-6)
            return times

        return timed

    def captured(self, program: Call) -> Program:
        """Warm up on a side stream, then capture into the shared pool; what cannot be captured runs eagerly."""
        stream = self._cuda.Stream()
        stream.wait_stream(self._cuda.current_stream())
        with self._cuda.stream(stream):
            for _ in range(self._warm_calls):
                program()
        self._cuda.current_stream().wait_stream(stream)
        self._synchronize()
        graph = self._cuda.CUDAGraph()
        try:
            with self._cuda.graph(graph, pool=self._pool):
                outputs = program()
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            self._raise_if_lost(error)
            self._failures.append(reason)
            return Program(program, None, reason)

        def replay(kept: Call = program) -> None:
            """The program stays alive with its graph, which reads the tensors that it holds."""
            graph.replay()

        return Program(replay, outputs)

    def not_captured(self) -> list[str]:
        """See `Clock`."""
        failures, self._failures = self._failures, []
        return failures

    def state(self) -> dict[str, Any]:
        """Clocks and reasons, where they can be read."""
        return self._sensors() if self._sensors is not None else {}

    def free(self) -> None:
        """Let go of cached blocks."""
        self._cuda.empty_cache()

    def _synchronize(self) -> None:
        try:
            self._cuda.synchronize()
        except RuntimeError as error:
            self._raise_if_lost(error)
            raise

    def _raise_if_lost(self, error: RuntimeError) -> None:
        if any(words in str(error) for words in STICKY):
            raise DeviceLostError(str(error)) from error


def told_memory(error: Exception) -> None:
    """Raise OutOfMemoryError where an allocation failed, on either device; else return."""
    words = str(error)
    if type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in words or "not enough memory" in words:
        raise OutOfMemoryError(" ".join(words.split())[:200]) from error
