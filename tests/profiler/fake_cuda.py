"""Stands in for torch.cuda where there is no GPU: it runs what it is given at once and writes down what was asked."""

from contextlib import contextmanager

GRAPH_MS, EAGER_MS = 0.5, 2.0


class FakeCuda:
    """fails: what a capture raises. now_ms: a clock that each call moves on, less far for a replay."""

    def __init__(self, fails=None):
        self.log, self.fails, self.now_ms, self.capturing = [], fails, 0.0, False

    def graph_pool_handle(self):
        self.log.append("pool")
        return "the pool"

    def Event(self, enable_timing):  # noqa: N802 (torch's name)
        assert enable_timing
        return FakeEvent(self)

    def Stream(self):  # noqa: N802 (torch's name)
        return FakeStream(self, "side")

    def current_stream(self):
        return FakeStream(self, "main")

    @contextmanager
    def stream(self, stream):
        self.log.append(f"on {stream.name}")
        yield
        self.log.append("off")

    def CUDAGraph(self):  # noqa: N802 (torch's name)
        return FakeGraph(self)

    @contextmanager
    def graph(self, graph, pool):
        assert pool == "the pool"
        self.log.append("capture")
        if self.fails:
            raise RuntimeError(self.fails)
        yield

    def synchronize(self):
        self.log.append("synchronize")

    def empty_cache(self):
        self.log.append("empty")

    def kernel(self, ms):
        self.now_ms += ms


class FakeEvent:
    def __init__(self, cuda):
        self.cuda = cuda

    def record(self):
        self.at = self.cuda.now_ms

    def elapsed_time(self, end):
        assert self.cuda.log[-1] == "synchronize"
        return end.at - self.at


class FakeStream:
    def __init__(self, cuda, name):
        self.cuda, self.name = cuda, name

    def wait_stream(self, other):
        self.cuda.log.append(f"{self.name} waits for {other.name}")


class FakeGraph:
    def __init__(self, cuda):
        self.cuda = cuda

    def replay(self):
        self.cuda.log.append("replay")
        self.cuda.kernel(GRAPH_MS)
