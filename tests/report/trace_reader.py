"""Reads Chrome trace event files the strict way: what a viewer would have to guess is an error."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Slice:
    """Times in us. `inside`: slices and moments between its begin and its end, in order."""

    name: str
    start: float
    args: dict
    end: float = float("nan")
    inside: list[Slice] = field(default_factory=list)

    @property
    def length(self) -> float:
        return self.end - self.start


@dataclass
class Trace:
    """threads: outermost slices by process and thread name. moments: of processes. counters: [(us, value)] by name."""

    threads: dict[tuple[str, str], list[Slice]]
    moments: dict[str, list[Slice]]
    counters: dict[tuple[str, str], list[tuple[float, float]]]
    processes: list[str]
    other: dict

    def requests(self, process: str) -> dict[str, Slice]:
        """Slices of requests by name, from all lanes of a process."""
        lanes = [slices for (where, thread), slices in self.threads.items() if where == process and thread != "steps"]
        return {one.name: one for slices in lanes for one in slices}


def read_trace(path: Path) -> Trace:
    raw = path.read_bytes()
    document = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw, parse_constant=_refuse)
    events = document["traceEvents"]
    assert list(document) == ["traceEvents", "otherData"]
    named = [e for e in events if e["ph"] == "M"]
    process = {e["pid"]: e["args"]["name"] for e in named if e["name"] == "process_name"}
    names = [e for e in named if e["name"] == "thread_name"]
    thread = {(e["pid"], e["tid"]): e["args"]["name"] for e in names}
    assert len({tid for _, tid in thread}) == len(names), "thread ids are not unique"
    threads, moments, counters = (defaultdict(list) for _ in range(3))
    open_slices, now = defaultdict(list), {}
    for event in events:
        if event["ph"] == "M":
            continue
        where, us = process[event["pid"]], event["ts"]
        if event["ph"] == "C":
            for key, value in event["args"].items():
                track = counters[where, f"{event['name']} {key}"]
                assert not track or track[-1][0] <= us
                track.append((us, value))
            continue
        one = Slice(event.get("name", ""), us, event.get("args", {}))
        if event["ph"] == "i" and event["s"] == "p":
            moments[where].append(one)
            continue
        place = (event["pid"], event["tid"])
        assert us >= now.get(place, us), "time goes backwards on a thread"
        now[place] = us
        stack = open_slices[place]
        if event["ph"] == "E":
            stack.pop().end = us
            continue
        (stack[-1].inside if stack else threads[where, thread[place]]).append(one)
        if event["ph"] == "B":
            stack.append(one)
        else:
            assert (event["ph"], event["s"]) == ("i", "t")
            one.end = us
    assert not any(open_slices.values()), "a slice never ends"
    return Trace(dict(threads), dict(moments), dict(counters), list(process.values()), document["otherData"])


def _refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")
