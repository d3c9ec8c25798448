"""What a GPU says about itself while it is measured: clocks, temperature, power, throttle reasons. Read, never set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FAULTS = {  # NVML's bits of reasons that make a time worthless; a power cap is the steady state of small cards
    0x08: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
}
POWER_CAP = 0x04


def gpu_sensors(index: int = 0) -> tuple[Callable[[], dict[str, Any]] | None, dict[str, Any]]:
    """A reader of the GPU's state, and its driver and power limit; (None, why) where NVML is not there."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        about = {"driver": _text(pynvml.nvmlSystemGetDriverVersion())}
        about["power_limit_w"] = pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000
    except Exception as error:  # no module, library or rights
        return None, {"sensors": f"none: {type(error).__name__}"}

    def read() -> dict[str, Any]:
        reasons = _reasons(pynvml, handle)
        return {
            "sm_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
            "memory_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
            "temperature_c": pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
            "power_w": pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "power_capped": bool(reasons & POWER_CAP),
            "faults": [name for bit, name in FAULTS.items() if reasons & bit],
        }

    return read, about


def _reasons(pynvml: Any, handle: Any) -> int:
    for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
        if hasattr(pynvml, name):
            return int(getattr(pynvml, name)(handle))
    return 0


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
