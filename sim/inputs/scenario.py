"""The scenario file: what a user writes, key by key, in the engines' own words.

Every model forbids unknown keys and is frozen. Rules that need more than one key live in `checks.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from .calibration import InlineAffine
from .numbers import (
    MAX_DURATION_S,
    MAX_TOKENS,
    Count,
    DraftLength,
    Fraction,
    NonNegative,
    Number,
    Positive,
    Tokens,
    TokensOrNone,
    _Number,
)


class Section(BaseModel):
    """A block of a scenario: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _form(value: Any) -> str:
    """Which of two forms a value takes, so that an error speaks of the form that was written."""
    return "mapping" if isinstance(value, dict | BaseModel) else "plain"


def _percentile_form(value: Any) -> str:
    return "word" if value == "mean" else "plain"


def _flag(value: Any) -> Any:
    """YAML 1.1 spells booleans `yes` and `on` too; numbers are never booleans."""
    words = {"yes": True, "on": True, "no": False, "off": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


Flag = Annotated[bool, BeforeValidator(_flag)]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Seed = Annotated[int, _Number, Field(ge=0, le=2**63 - 1)]


# --- workload ---------------------------------------------------------------------------------------------------


class AtOnce(Section):
    """All requests arrive at time 0."""

    kind: Literal["at_once"]


class Closed(Section):
    """A fixed number of users: each sends its next request `think_time_s` after its last one ended."""

    kind: Literal["closed"]
    concurrency: Count
    think_time_s: Annotated[NonNegative, Field(le=1e6)] = 0.0


class Poisson(Section):
    """Independent arrivals, `rate` requests per second."""

    kind: Literal["poisson"]
    rate: Positive


class Gamma(Section):
    """Gamma distributed gaps: `cv` above 1 is burstier than Poisson, below 1 steadier."""

    kind: Literal["gamma"]
    rate: Positive
    cv: Positive


class TraceColumnMap(Section):
    """What the columns of a trace (CSV), or its keys (JSON lines, `usage.prompt_tokens` for nested ones), are called.

    `arrival_unit` left out: dates, or numbers in seconds. `hash_ids`: lists of block hashes of `hash_block_tokens`.
    """

    arrival: Text | None = None
    prompt_tokens: Text
    output_tokens: Text
    arrival_unit: Literal["date", "s", "ms", "us", "ns"] | None = None
    hash_ids: Text | None = None
    hash_block_tokens: Tokens | None = None


class TraceArrivals(Section):
    """Arrivals and lengths from a recorded trace; `scale` 5 is five times the rate, `window_s` cuts [from, to).

    `columns`: for traces of no known format. `rate`: Poisson arrivals instead of the recorded ones, which a trace of
    lengths alone does not have. `spread_bursts`: bursts of a coarse clock are spread over its ticks.
    """

    kind: Literal["trace"]
    path: Text
    format: Literal["auto", "azure", "vidur", "mooncake", "csv", "jsonl"] = "auto"
    columns: TraceColumnMap | None = None
    scale: Positive = 1.0
    window_s: Annotated[list[NonNegative], Field(min_length=2, max_length=2)] | None = None
    rate: Positive | None = None
    spread_bursts: Flag = True


Arrivals = Annotated[AtOnce | Closed | Poisson | Gamma | TraceArrivals, Field(discriminator="kind")]


class Lognormal(Section):
    """Lognormal lengths by median and 90th percentile, rounded to whole tokens, at least 1, at most `max`."""

    kind: Literal["lognormal"]
    median: Annotated[Positive, Field(le=MAX_TOKENS)]
    p90: Annotated[Positive, Field(le=MAX_TOKENS)]
    max: Tokens | None = None


class Geometric(Section):
    """Geometric lengths starting at 1: every token is the last with probability 1 / mean."""

    kind: Literal["geometric"]
    mean: Annotated[Number, Field(ge=1, le=MAX_TOKENS)]
    max: Tokens | None = None


class Uniform(Section):
    """Whole lengths from `low` to `high`, both included, all equally likely."""

    kind: Literal["uniform"]
    low: Tokens
    high: Tokens


class Empirical(Section):
    """Lengths drawn with replacement from a file: one whole number a line."""

    kind: Literal["empirical"]
    path: Text


LengthDistribution = Annotated[Lognormal | Geometric | Uniform | Empirical, Field(discriminator="kind")]
Length = Annotated[
    Annotated[Tokens, Tag("plain")] | Annotated[LengthDistribution, Tag("mapping")], Discriminator(_form)
]


class Iid(Section):
    """Every draft token is accepted with probability `alpha`, independently of all others."""

    kind: Literal["iid"]
    alpha: Fraction


class Rate(Section):
    """A dashboard's accepted / drafted tokens (a fraction) at `num_speculative_tokens`, solved for an iid alpha."""

    kind: Literal["rate"]
    acceptance_rate: Fraction
    num_speculative_tokens: Annotated[DraftLength, Field(ge=1)]


class AcceptanceLength(Section):
    """A dashboard's mean acceptance length (bonus token included) at `num_speculative_tokens`, solved for alpha."""

    kind: Literal["length"]
    acceptance_length: Annotated[Number, Field(ge=1)]
    num_speculative_tokens: Annotated[DraftLength, Field(ge=1)]


class Memory(Section):
    """A stationary AR(1) on the logit per output position: correlation `phi`, standard deviation `sd`."""

    phi: Annotated[Number, Field(ge=0, lt=1)]
    sd: Annotated[NonNegative, Field(le=10)]


class PerPosition(Section):
    """Acceptance by draft position, as pooled from a log at `fitted_k` (default: the vector's length).

    Give `conditional` (P accepted, given all before were) or `unconditional` (vLLM's per-position rates), not both.
    `sigma` is the standard deviation of a request's shift on the logit.
    """

    kind: Literal["per_position"]
    conditional: Annotated[list[Fraction], Field(min_length=1, max_length=64)] | None = None
    unconditional: Annotated[list[Fraction], Field(min_length=1, max_length=64)] | None = None
    fitted_k: Annotated[DraftLength, Field(ge=1)] | None = None
    sigma: Annotated[NonNegative, Field(le=10)] = 0.0
    memory: Memory | None = None


Acceptance = Annotated[Iid | Rate | AcceptanceLength | PerPosition, Field(discriminator="kind")]


class Slice(Section):
    """A workload class with its own lengths, acceptance and success rate; `share` of all requests.

    `prefix_hit_tokens` are never computed. `shared_prefix_tokens` are the same in all prompts of the slice, and saved
    where `engine.prefix_caching` still finds them. `priority`: smaller first, under `scheduling_policy: priority`.
    """

    name: Annotated[str, Field(min_length=1, max_length=100)]
    share: Fraction = 1.0
    prompt_tokens: Length | None = None
    output_tokens: Length | None = None
    prefix_hit_tokens: TokensOrNone = 0
    acceptance: Acceptance | None = None
    success_rate: Fraction | None = None
    priority: Annotated[int, _Number, Field(ge=-1_000_000, le=1_000_000)] = 0
    shared_prefix_tokens: TokensOrNone = 0


class Workload(Section):
    """Who asks, when, and how much: arrivals and slices.

    Either `requests`, or `duration_s`: all that are sent in [0, duration_s). A trace may have neither (all its rows).
    """

    requests: Count | None = None
    duration_s: Annotated[Positive, Field(le=MAX_DURATION_S)] | None = None
    arrivals: Arrivals
    slices: Annotated[list[Slice], Field(min_length=1, max_length=1000)]


# --- engine -----------------------------------------------------------------------------------------------------

Method = Literal["draft_model", "eagle", "eagle3", "mtp", "ngram", "suffix"]
LOOKUP_METHODS = ("ngram", "suffix")
BatchSizeRange = Annotated[list[Annotated[int, _Number, Field(ge=0, le=1_000_000)]], Field(min_length=3, max_length=3)]


class Speculation(Section):
    """vLLM's `--speculative-config`. `num_speculative_tokens` 0 means that speculation is not configured.

    `num_speculative_tokens_per_batch_size`: [first, last, k] by requests scheduled in a step. `policy`: `fixed`;
    `goodput`, the k with the most expected tokens per ms; `clairvoyant`, a bound that knows what will be accepted.
    Keys that name files or kernels (`model`, `quantization`, …) stay in the resolved scenario and cost nothing here.
    """

    method: Method
    num_speculative_tokens: DraftLength
    num_speculative_tokens_per_batch_size: (
        Annotated[list[BatchSizeRange], Field(min_length=1, max_length=1000)] | None
    ) = None
    policy: Literal["fixed", "goodput", "clairvoyant"] = "fixed"
    prompt_lookup_min: Count | None = None
    prompt_lookup_max: Count | None = None
    model: str | None = None
    draft_tensor_parallel_size: Count | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    attention_backend: str | None = None
    draft_sample_method: str | None = None
    rejection_sample_method: Literal["standard", "block"] | None = None


class Pool(Section):
    """Replicas of their own for some slices, with the draft length of `speculation` or their own (0: off)."""

    slices: Annotated[list[Text], Field(min_length=1, max_length=1000)]
    replicas: Annotated[Count, Field(le=1024)] = 1
    num_speculative_tokens: DraftLength | None = None


class Engine(Section):
    """Limits and rules of the serving engine; keys left out take the style's own defaults, printed as assumed.

    `enable_prefix_caching` is vLLM's word for `prefix_caching`.

    SGLang's own words win over the common ones that mean the same: `max_running_requests` (max_num_seqs), `page_size`
    (block_size), `chunked_prefill_size` (max_num_batched_tokens; -1: prompts are never cut), `max_total_tokens` (KV
    slots with the draft loaded), `disable_overlap_schedule` (async_scheduling false).
    """

    style: Literal["vllm", "sglang", "fixed_batch"] = "vllm"
    max_num_seqs: Count | None = None
    max_num_batched_tokens: Tokens | None = None
    max_num_scheduled_tokens: Tokens | None = None
    max_model_len: Tokens | None = None
    block_size: Annotated[Tokens, Field(le=4096)] | None = None
    num_gpu_blocks: Count | None = None
    num_gpu_blocks_baseline: Count | None = None
    gpu_memory_utilization: Annotated[Fraction, Field(gt=0)] | None = None
    enable_chunked_prefill: Flag = True
    long_prefill_token_threshold: TokensOrNone = 0
    adaptive_long_prefill_threshold: Flag = False
    scheduler_reserve_full_isl: Flag = True
    scheduling_policy: Literal["fcfs", "priority"] = "fcfs"
    prefix_caching: Flag = False
    enable_prefix_caching: Flag | None = None
    watermark: Annotated[Fraction, Field(lt=1)] = 0.0
    async_scheduling: Flag | None = None
    replicas: Annotated[Count, Field(le=1024)] = 1
    pools: Annotated[list[Pool], Field(min_length=1, max_length=100)] | None = None
    router: Literal["round_robin", "least_loaded"] = "round_robin"
    max_running_requests: Count | None = None
    chunked_prefill_size: Annotated[int, _Number, Field(ge=-1, le=MAX_TOKENS)] | None = None
    max_prefill_tokens: Tokens | None = None
    page_size: Annotated[Tokens, Field(le=4096)] | None = None
    mem_fraction_static: Annotated[Fraction, Field(gt=0)] | None = None
    max_total_tokens: Count | None = None
    schedule_conservativeness: Annotated[NonNegative, Field(le=1e3)] | None = None
    disable_overlap_schedule: Flag | None = None

    @property
    def caches_prefixes(self) -> bool:
        """Whether KV blocks are kept by content, in either spelling."""
        return self.prefix_caching or bool(self.enable_prefix_caching)


# --- what it must achieve, what it costs, how it is run -----------------------------------------------------------


class Quality(Section):
    """`lossless`: the same outputs and success rate in every arm; `lossy`: every arm states its own."""

    contract: Literal["lossless", "lossy"] = "lossless"


class Slo(Section):
    """Latency limits in ms at `percentile` (or the mean), and a deadline per request in seconds."""

    ttft_ms: Positive | None = None
    tpot_ms: Positive | None = None
    e2el_ms: Positive | None = None
    percentile: Annotated[
        Annotated[Number, Field(ge=1, lt=100), Tag("plain")] | Annotated[Literal["mean"], Tag("word")],
        Discriminator(_percentile_form),
    ] = 95.0
    deadline_s: Positive | None = None


class Price(Section):
    """What a GPU costs per hour and how many serve one replica."""

    usd_per_gpu_hour: Annotated[NonNegative, Field(le=1e9)]
    gpus_per_replica: Count = 1


Replications = Annotated[Count, Field(le=1000)]
Precision = Annotated[Positive, Field(lt=1)]


class Run(Section):
    """Seed, independent replications, and how much of each start is cut before latencies are taken.

    `precision` adds replications until the half-width of every 95 % interval is at most that fraction of its value, for
    the headline metrics or those that are named, up to `max_replications`. `intervals`: over replications, or over
    batches of one long run (`batch_means`).
    """

    seed: Seed = 1
    replications: Replications = 1
    precision: (
        Annotated[
            Annotated[Precision, Tag("plain")]
            | Annotated[dict[str, Precision], Field(min_length=1, max_length=100), Tag("mapping")],
            Discriminator(_form),
        ]
        | None
    ) = None
    max_replications: Replications | None = None
    intervals: Literal["replications", "batch_means"] = "replications"
    warmup: Literal["auto", "none"] = "auto"


CalibrationReference = Annotated[
    Annotated[Text, Tag("plain")] | Annotated[InlineAffine, Tag("mapping")], Discriminator(_form)
]


class Scenario(Section):
    """A complete question: calibration, workload, speculation, engine, quality, SLO, price, run, further arms."""

    calibration: CalibrationReference
    workload: Workload
    speculation: Speculation | None = None
    engine: Engine = Engine()
    quality: Quality = Quality()
    slo: Slo | None = None
    price: Price | None = None
    run: Run = Run()
    arms: dict[str, dict[str, Any]] = {}
