"""Broken scenarios: a valid one with lines replaced, and what must be told of them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sim.inputs.arms import resolve_arms
from sim.inputs.errors import InputError
from sim.inputs.load import load_scenario

LINE = re.compile(r".+:\d+:\d+: \S+: .+, .+, .+")

VALID = """\
calibration: {kind: affine, target_fixed_ms: 10, num_gpu_blocks: 1000, num_gpu_blocks_baseline: 1000}
workload:
  requests: 20
  arrivals: {kind: closed, concurrency: 4}
  slices:
    - name: chat
      share: 0.75
      prompt_tokens: 100
      output_tokens: {kind: geometric, mean: 20}
      acceptance: {kind: iid, alpha: 0.7}
    - name: code
      share: 0.25
      prompt_tokens: 200
      output_tokens: 10
      acceptance: {kind: per_position, conditional: [0.8, 0.7]}
speculation: {method: eagle, num_speculative_tokens: 3}
engine: {style: vllm, max_num_seqs: 8, max_num_batched_tokens: 512}
quality: {contract: lossless}
slo: {ttft_ms: 500, percentile: 95}
price: {usd_per_gpu_hour: 3.5}
run: {seed: 1, replications: 1}
arms: {}
"""


@dataclass(frozen=True)
class Broken:
    """VALID with some lines replaced (None: removed), or another text or bytes, and overrides.

    found: the field and line that must be named; line 0: wherever.
    """

    name: str
    field: str
    line: int
    lines: dict[int, str | None] = field(default_factory=dict)
    text: str | bytes | None = None
    sets: tuple[str, ...] = ()
    words: str = ""
    files: dict[str, str | bytes] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        for name, content in self.files.items():
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        text = self.text
        if text is None:
            kept = [self.lines.get(place, line) for place, line in enumerate(VALID.splitlines(), start=1)]
            text = "\n".join(line for line in kept if line is not None) + "\n"
        path = folder / "broken.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


def at(line: int, new: str | None, found: str, words: str = "", found_line: int | None = None) -> Broken:
    """One line of VALID replaced; the mistake is found in it."""
    return Broken(f"{found} <- {new}", found, line if found_line is None else found_line, {line: new}, words=words)


def override(text: str, found: str, words: str = "") -> Broken:
    return Broken(f"--set {text[:60]}", found, 1, sets=(text,), words=words)


def whole(name: str, text: str | bytes, found: str, line: int, words: str = "") -> Broken:
    return Broken(name, found, line, text=text, words=words)


SLICE = "workload.slices.0"


def identity(case):
    return re.sub(r"[^\w.]+", "-", case.name)[:80]


def problems_of(path, sets):
    """Lines that loading and resolving print."""
    with pytest.raises(InputError) as caught:
        resolve_arms(load_scenario(path, sets))
    return [str(problem) for problem in caught.value.problems]


def assert_told(lines, case):
    assert lines
    assert all(LINE.fullmatch(line) for line in lines), lines
    place = rf":{case.line}:\d+: " if case.line else r":\d+:\d+: "
    told = re.compile(f".*{place}{re.escape(case.field)}.*")
    assert any(told.fullmatch(line) and case.words in line for line in lines), lines
