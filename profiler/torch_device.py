"""A machine with torch: models in memory, and the time of each point on its clock."""

from __future__ import annotations

import datetime
import gc
import os
import platform
import time
from pathlib import Path
from typing import Any

import torch

from .attention import choose_attention
from .clock import Call, Clock, CpuClock, CudaClock, told_memory
from .device import Measurement
from .errors import ProfileError
from .kv_cache import KVCache, make_cache
from .linear import DTYPES
from .model import Decoder
from .phases import COLD, ON_THE_WALL, Models, live_speculator, ready
from .plan import Plan
from .point import Point
from .sensors import gpu_sensors
from .timing import Sample, Settings, measure, summary

KV_SHARE = 0.6  # of what is free on a GPU when the weights are there
MOST_RETRIES, BACK_OFF_S = 5, 0.05
CPU_CACHE_BYTES = 2**25  # where the system does not tell
WARM_STEPS = 3


class TorchDevice:
    """The device of a plan. Raises ProfileError where no attention back end works."""

    def __init__(self, plan: Plan, clock: Clock | None = None) -> None:
        setup = plan.setup
        self._plan, self._device = plan, setup.device
        if setup.device == "cpu":
            torch.set_num_threads(setup.threads)
        torch.manual_seed(setup.seed)
        target, dtype = setup.measured_target(), DTYPES[setup.dtype]
        self._attention, self._left_out = choose_attention(
            setup.backend, dtype, setup.device, target.heads, target.kv_heads
        )
        sensors, self._about = gpu_sensors() if setup.device == "cuda" else (None, {})
        self._clock: Clock = clock or (
            CudaClock(torch.cuda, sensors) if setup.device == "cuda" else CpuClock(setup.threads)
        )
        try:
            self._models = self._load(plan, dtype)
        except torch.OutOfMemoryError as error:
            rule = f"models and caches are held at once; attention is {self._attention.name}"
            remedy = "take a smaller preset, `--depths 4,8`, or a back end that reads pages"
            raise ProfileError("specsim profile", "memory", "ran out while loading", rule, remedy) from error
        self._flush = self._flush_call()
        if setup.device == "cuda":
            gc.freeze()  # what is there now stays: each capture collects garbage

    def environment(self) -> dict[str, Any]:
        """Machine, versions and limits."""
        common = {
            "kind": self._device,
            "torch": torch.__version__,
            "backend": self._attention.name,
            "left_out": self._left_out,
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "python": platform.python_version(),
        }
        return common | (self._gpu() if self._device == "cuda" else self._cpu()) | self._about

    def measure(self, point: Point, settings: Settings) -> Measurement:
        """See `Device`."""
        before = self._clock.state()
        try:
            measurement = self._measure_calmly(point, settings)
        except Exception as error:
            gc.collect()
            told_memory(error)
            raise
        finally:
            self._clock.free()
        measurement.extra.update(before=before, after=self._clock.state())
        return measurement

    def _measure_calmly(self, point: Point, settings: Settings) -> Measurement:
        """Again, after a pause, where the GPU throttled for another reason than its power cap."""
        pause = BACK_OFF_S
        for _ in range(MOST_RETRIES):
            with torch.inference_mode():
                measurement = self._once(point, settings)
            if not self._clock.state().get("faults"):
                break
            time.sleep(pause)
            pause *= 1.5
        return measurement

    def _once(self, point: Point, settings: Settings) -> Measurement:
        if point.phase == "live":
            return self._live(point)
        prepared = ready(self._models, self._clock, point)
        make = self._clock.wall_block if point.phase in ON_THE_WALL else self._clock.block
        sample = measure(make(prepared.call, self._flush if point.phase in COLD else None), settings)
        reasons = [*self._clock.not_captured(), *filter(None, [prepared.why_eager])]
        extra: dict[str, Any] = {"why_eager": "; ".join(dict.fromkeys(reasons))} if reasons else {}
        if prepared.bytes:
            extra["gb_per_s"] = round(1e-6 * prepared.bytes / sample.median_ms, 3)
        if prepared.flops:
            extra["tflop_per_s"] = round(1e-9 * prepared.flops / sample.median_ms, 5)
        return Measurement(sample, extra)

    def _live(self, point: Point) -> Measurement:
        speculator = live_speculator(self._models, self._clock, point)
        batch, query, context = point.group
        rows = self._models.tokens(batch, query)
        steps: list[list[float]] = []
        contexts = 0
        delivered = 0

        def step() -> None:
            nonlocal delivered
            delivered = sum(speculator.step().accepted) + batch

        timed = self._clock.wall_block(step, None)
        timed(WARM_STEPS)
        speculator.start_at(context, rows)
        contexts = batch * context
        for _ in range(self._plan.preset.live_steps):
            (ms,) = timed(1)
            steps.append([round(ms, 5), contexts, delivered])
            contexts += delivered
        sample: Sample = summary([step[0] for step in steps], "converged")
        return Measurement(sample, {"steps": steps})

    def _load(self, plan: Plan, dtype: torch.dtype) -> Models:
        setup, tokens = plan.setup, plan.preset.most_tokens()
        target_dims, draft_dims = setup.measured_target(), setup.draft
        common: dict[str, Any] = {"most_tokens": tokens + 64}
        with torch.inference_mode():
            target = Decoder(target_dims, setup.dtype, setup.device, self._attention, seed=setup.seed, **common)
            draft = None
            if draft_dims is not None:
                draft_dtype = setup.dtype if setup.dtype != "fp8" else "bf16"
                draft = Decoder(
                    draft_dims,
                    draft_dtype,
                    setup.device,
                    self._attention,
                    seed=setup.seed + 1,
                    shared=target,
                    **common,
                )
            requests = plan.most_requests()
            pool = self._pool_tokens(plan)
            target_cache = self._cache(target, requests, tokens, dtype, pool, setup.seed)
            draft_cache = self._cache(draft, requests, tokens, dtype, pool, setup.seed + 1) if draft else None
        return Models(target, target_cache, draft, draft_cache, setup.device, setup.seed)

    def _cache(
        self, model: Decoder, requests: int, tokens: int, dtype: torch.dtype, pool: int | None, seed: int
    ) -> KVCache:
        dims = model.dims
        return make_cache(
            dims.layers,
            dims.kv_heads,
            dims.head_dim,
            requests,
            tokens,
            dtype=dtype,
            device=self._device,
            paged=self._attention.paged,
            seed=seed,
            pool_tokens=pool,
            page=self._attention.page,
        )

    def _pool_tokens(self, plan: Plan) -> int | None:
        """Slots that fit on a GPU; a CPU holds all that are asked for."""
        if self._device == "cpu":
            return None
        setup = plan.setup
        each = setup.measured_target().kv_bytes_per_token(setup.dtype)
        each += setup.draft.kv_bytes_per_token(setup.dtype) if setup.draft else 0
        return int(KV_SHARE * free_bytes(self._device) / each)

    def _flush_call(self) -> Call | None:
        """Fill the last cache with other bytes; none where a whole step fits into it anyway."""
        setup, size = self._plan.setup, self._cache_bytes()
        weights = setup.measured_target().weight_bytes(setup.dtype)
        if weights < size:
            return None
        buffer = torch.zeros(2 * size // 4, dtype=torch.int32, device=self._device)
        return lambda: buffer.add_(1)

    def _cache_bytes(self) -> int:
        if self._device == "cuda":
            return int(getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 2**26))
        sizes = [
            size for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size") if (size := _size(path))
        ]
        return max(sizes, default=CPU_CACHE_BYTES)

    def _gpu(self) -> dict[str, Any]:
        properties = torch.cuda.get_device_properties(0)
        return {
            "name": properties.name,
            "cuda": torch.version.cuda,
            "capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": properties.multi_processor_count,
            "memory_bytes": properties.total_memory,
            "l2_bytes": self._cache_bytes(),
            "reserve_bytes": 2 * 2**30,
        }

    def _cpu(self) -> dict[str, Any]:
        return {
            "name": cpu_name(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "clock": CpuClock(self._plan.setup.threads).name,
            "machine": platform.machine(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "load_at_start": round(os.getloadavg()[0], 2),
        }


def cpu_name() -> str:
    """The processor's model as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def free_bytes(device: str) -> float:
    """Memory that can be allocated now."""
    if device == "cuda":
        return float(torch.cuda.mem_get_info()[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _size(path: Path) -> int:
    """`32768K` as bytes."""
    text = path.read_text(encoding="utf-8").strip()
    factor = {"K": 2**10, "M": 2**20}.get(text[-1:], 1)
    digits = text.rstrip("KM")
    return int(digits) * factor if digits.isdigit() else 0
