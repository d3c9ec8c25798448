"""GPUs as their vendor describes them: the peaks that analytic calibrations start from.

Peaks are dense (datasheets state twice that, with sparsity). Memory is what the driver reports in MiB, which is below
the nominal size where ECC takes its part.
"""

from __future__ import annotations

from typing import NamedTuple

MIB = 1024**2


class Device(NamedTuple):
    """One GPU. link_gb_per_s: one direction between GPUs of a server, half of what datasheets add up.

    fp8_tflop_per_s is None without such tensor cores. unsure: what of the above is not in the named source.
    """

    name: str
    memory_bytes: int
    bandwidth_gb_per_s: float
    bf16_tflop_per_s: float
    fp8_tflop_per_s: float | None
    link_gb_per_s: float
    source: str
    unsure: str | None = None


DEVICES = {
    "h100": Device(
        "NVIDIA H100 SXM 80GB", 81559 * MIB, 3350, 989.5, 1979, 450, "NVIDIA H100 Tensor Core GPU datasheet (SXM)"
    ),
    "h200": Device("NVIDIA H200 SXM 141GB", 143771 * MIB, 4800, 989.5, 1979, 450, "NVIDIA H200 datasheet (SXM)"),
    "a100": Device(
        "NVIDIA A100 SXM 80GB", 81920 * MIB, 2039, 312, None, 300, "NVIDIA A100 Tensor Core GPU datasheet (80GB SXM)"
    ),
    "l40s": Device("NVIDIA L40S 48GB", 46068 * MIB, 864, 362.05, 733, 32, "NVIDIA L40S datasheet; no NVLink, PCIe 4.0"),
    "l4": Device("NVIDIA L4 24GB", 23034 * MIB, 300, 121, 242.5, 32, "NVIDIA L4 datasheet; no NVLink, PCIe 4.0"),
    "rtx4090": Device(
        "NVIDIA GeForce RTX 4090 24GB",
        24564 * MIB,
        1008,
        165.2,
        330.3,
        32,
        "NVIDIA Ada GPU architecture whitepaper, with fp32 accumulation; no NVLink, PCIe 4.0",
        "the link: without peer-to-peer access, copies go through the host and are slower",
    ),
    "b200": Device(
        "NVIDIA B200 180GB",
        183359 * MIB,
        8000,
        2250,
        4500,
        900,
        "NVIDIA DGX B200 datasheet, an eighth of its 64 TB/s and 72 PFLOP/s of sparse FP8; NVLink 5",
        "bandwidth: other sources give 7.7 TB/s for HGX boards",
    ),
}


def device_key(name: str) -> str:
    """A GPU's name as users write it (`RTX 4090`, `rtx-4090`) as a key of DEVICES; it may be none."""
    return "".join(sign for sign in name.lower() if sign.isalnum())
