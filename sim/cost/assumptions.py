"""What analytic calibrations assume beyond datasheets and dims, each number with its origin; none is fitted."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Shares of peak rates that kernels reach, launch costs, the host. `statements` says each in words.

    roofline_exponent: p in t = (read^p + compute^p)^(1/p); infinity would be max, 1 the sum.
    """

    bandwidth_efficiency: float = 0.90
    flops_efficiency: float = 0.78
    attention_flops_efficiency: float = 0.75
    roofline_exponent: float = 1.6
    graph_kernel_gap_us: float = 0.5
    eager_launch_us: float = 20.0
    graph_launch_us: float = 10.0
    all_reduce_latency_us: float = 10.0
    host_ms: float = 1.207
    sampling_bytes_per_logit: float = 20.0
    draft_sampling_bytes_per_logit: float = 4.0
    draft_rows_per_logit_row: int = 4
    draft_logit_rows_limit: int = 128
    reserve_bytes: int = 2 * GIB

    def statements(self) -> list[str]:
        """One sentence per number, for the provenance of a file."""
        return [
            f"bandwidth_efficiency {self.bandwidth_efficiency}: a copy on an H200 reaches 4.3 of 4.8 TB/s; taken for "
            "every GPU, and for links between GPUs.",
            f"flops_efficiency {self.flops_efficiency}: large bf16 products on an H200 reach 769 to 798 of 989 "
            "TFLOP/s, the lower end; taken for every GPU and dtype.",
            f"attention_flops_efficiency {self.attention_flops_efficiency}: FlashAttention-3, arXiv:2407.08608, on an "
            "H100 at its best; taken for every GPU.",
            f"roofline_exponent {self.roofline_exponent}: the middle of 1.2 to 2.0, found on published tables of dense "
            "layers.",
            f"graph_kernel_gap_us {self.graph_kernel_gap_us}: between two kernels of a CUDA graph, from NVIDIA's blog "
            "Getting Started with CUDA Graphs (3.4 us for a kernel of 2.9 us, on a V100).",
            f"eager_launch_us {self.eager_launch_us:g}: an assumption; the upper end of the 5 to 20 us that are "
            "commonly told for a launch from Python. An eager pass takes at least its launches.",
            f"graph_launch_us {self.graph_launch_us:g}: an assumption, for each graph of a piecewise pass.",
            f"all_reduce_latency_us {self.all_reduce_latency_us:g}: an assumption, between GPUs of one server.",
            f"host_ms {self.host_ms}: the overhead of a step in the fit of arXiv:2601.11580, vLLM 0.10.1.1 on one "
            "H100; taken for every batch and model.",
            f"sampling_bytes_per_logit {self.sampling_bytes_per_logit:g}: 16-bit logits written and read, fp32 logits "
            "and probabilities written and read.",
            f"draft_sampling_bytes_per_logit {self.draft_sampling_bytes_per_logit:g}: 16-bit logits written and read.",
            f"Logits of a first draft pass: one row in {self.draft_rows_per_logit_row} (k = 3), at most "
            f"{self.draft_logit_rows_limit}: the table has rows, not requests.",
            f"reserve_bytes {self.reserve_bytes / GIB:g} GiB: an assumption, for activations, CUDA graphs and "
            "framework.",
        ]
