"""The same four requests as a file of every trace format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from sim.inputs.scenario import TraceColumnMap

ARRIVAL_MS = (0.0, 4314.5, 4314.5, 9000.25)
PROMPT_TOKENS = (374, 1024, 513, 7)
OUTPUT_TOKENS = (44, 109, 55, 1)
HASHES = ([1], [1, 2], [1, 3], [9])
REQUESTS = list(zip(ARRIVAL_MS, PROMPT_TOKENS, OUTPUT_TOKENS, strict=True))
_CSV = TraceColumnMap(arrival="sent at", prompt_tokens="in", output_tokens="out", arrival_unit="us")
_JSONL = TraceColumnMap(arrival="time", prompt_tokens="usage.prompt_tokens", output_tokens="usage.completion_tokens")


@dataclass(frozen=True)
class TraceFile:
    """A format with its lines. first_row: the line number of the first request."""

    name: str
    lines: list[str]
    first_row: int
    columns: TraceColumnMap | None = None

    def write(self, folder: Path, content: bytes | None = None) -> Path:
        path = folder / "trace"
        path.write_bytes("\n".join(self.lines).encode() if content is None else content)
        return path


def _date(ms: float) -> str:
    return f"2023-11-16 18:15:{46 + ms / 1000:.7f}"


def _mooncake(ms: float, prompt: int, output: int, hashes: list[int]) -> str:
    return json.dumps({"timestamp": ms, "input_length": prompt, "output_length": output, "hash_ids": hashes})


def _log(ms: float, prompt: int, output: int) -> str:
    return json.dumps(
        {
            "id": 'a, "b"',
            "time": f"2024-05-01T12:00:{ms / 1000:09.6f}Z",
            "usage": {"prompt_tokens": prompt, "completion_tokens": output},
        }
    )


FILES = [
    TraceFile(
        "azure",
        ["TIMESTAMP,ContextTokens,GeneratedTokens", *(f"{_date(ms)},{p},{o}" for ms, p, o in REQUESTS)],
        2,
    ),
    TraceFile(
        "vidur",
        ["arrived_at,num_prefill_tokens,num_decode_tokens", *(f"{ms / 1000},{p},{o}" for ms, p, o in REQUESTS)],
        2,
    ),
    TraceFile(
        "mooncake",
        [_mooncake(*request, hashes) for request, hashes in zip(REQUESTS, HASHES, strict=True)],
        1,
    ),
    TraceFile(
        "csv",
        ['sent at;text;"out";in', *(f'{int(ms * 1000) + 17};"a; ""b""";{o};{p}.0' for ms, p, o in REQUESTS)],
        2,
        _CSV,
    ),
    TraceFile("jsonl", [_log(*request) for request in REQUESTS], 1, _JSONL),
]
