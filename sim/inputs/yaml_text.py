"""YAML, and JSON as its subset, to plain data with the place of every key and value.

The parser's events are put together here, without recursion: duplicate keys, aliases, tags and non-text keys are
found on the way, and neither an alias bomb nor endless nesting can grow anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from .errors import InputError, Problem
from .scalars import plain_scalar
from .source import Finding, Mark, Source, placed

MAX_DEPTH = 40
MAX_VALUES = 100_000  # about a second of reading
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_mapping(text: str, file: str, base_dir: Path) -> Source:
    """The mapping that a scenario or calibration file holds. Raises InputError where nothing can be made of it."""
    building = _Building(file)
    _build(text, building)
    if building.root is None:
        building.refuse(Mark(file, 1, 1), "file", "is empty", "an input is a mapping of keys", "fill it")
    if not isinstance(building.root, dict):
        what = "is a list" if isinstance(building.root, list) else "is a single value"
        building.refuse(Mark(file, 1, 1), "file", what, "an input is a mapping of keys", "write `key: value` lines")
    return Source(file, base_dir, building.root, building.marks, building.keys, building.problems)


def parse_value(text: str, file: str, path: str, column: int) -> Source:
    """One YAML value, as after `--set path=`: the data are {path: value}; columns start at `column`."""
    building = _Building(file, path, column - 1)
    _build(text, building)
    building.marks.setdefault(path, Mark(file, 1, column))
    return Source(file, Path(), {path: building.root}, building.marks, building.keys, building.problems)


@dataclass(slots=True)
class _Open:
    """A mapping or list that is still being filled."""

    value: dict[str, Any] | list[Any]
    path: str
    key: str | None = None


@dataclass(slots=True)
class _Building:
    """What has been read so far."""

    file: str
    root_path: str = ""
    column_shift: int = 0
    values: int = 0
    root: Any = None
    stack: list[_Open] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict)
    keys: dict[str, Mark] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def mark(self, mark: Any) -> Mark:
        if self.root_path:  # one line; the parser counts the end of its text as a line of its own
            return Mark(self.file, 1, (mark.column if mark.line == 0 else 0) + 1 + self.column_shift)
        return Mark(self.file, mark.line + 1, mark.column + 1)

    def note(self, mark: Mark, path: str, what: str, rule: str, remedy: str) -> None:
        self.problems.append(placed(mark, Finding(path or "file", what, rule, remedy)))

    def refuse(self, mark: Mark, path: str, what: str, rule: str, remedy: str) -> NoReturn:
        self.note(mark, path, what, rule, remedy)
        raise InputError(self.problems)

    def next_path(self) -> str:
        if not self.stack:
            return self.root_path
        top = self.stack[-1]
        last = str(len(top.value)) if isinstance(top.value, list) else str(top.key)
        return f"{top.path}.{last}" if top.path else last

    def add(self, value: Any, mark: Mark) -> str:
        """Put a value where it belongs; the path it got."""
        path = self.next_path()
        self.values += 1
        if self.values > MAX_VALUES:
            self.refuse(mark, "file", "more values follow", f"an input has at most {MAX_VALUES}", "check the file")
        key_mark = self.keys.get(path)
        on_next_line = key_mark is not None and key_mark.line < mark.line
        self.marks[path] = key_mark if on_next_line and key_mark is not None else mark
        if not self.stack:
            self.root = value
        else:
            top = self.stack[-1]
            if isinstance(top.value, list):
                top.value.append(value)
            else:
                top.value[str(top.key)] = value
                top.key = None
        return path

    def wants_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None


def _build(text: str, building: _Building) -> None:
    documents = 0
    for event in _events(text, building):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                mark, what = building.mark(event.start_mark), "a second document starts here"
                building.refuse(mark, "file", what, "a file holds one document", "split it into two files")
        elif isinstance(event, yaml.NodeEvent):
            _add_node(event, building)
        elif isinstance(event, yaml.CollectionEndEvent):
            building.stack.pop()


def _events(text: str, building: _Building) -> Iterator[Any]:
    """The parser's events; its errors, and characters that are no text, become an InputError."""
    rule = "an input is YAML or JSON text"
    odd = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if odd:
        line_start = text.rfind("\n", 0, odd.start()) + 1
        mark = Mark(building.file, text.count("\n", 0, odd.start()) + 1, odd.start() - line_start + 1)
        what = f"character U+{ord(odd.group()):04X} is not text"
        building.refuse(mark, "file", what, rule, "check that it is the right file and saved as UTF-8")
    try:
        yield from yaml.parse(text, Loader=_PARSER)
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        mark = building.mark(place) if place else Mark(building.file, 1, 1)
        path = building.stack[-1].path if building.wants_key() else building.next_path()
        building.refuse(mark, path, f"cannot be read: {error.problem}", rule, _syntax_remedy(error, text))
    except yaml.YAMLError as error:
        building.refuse(Mark(building.file, 1, 1), "file", f"cannot be read: {error}", rule, "check the file")


def _syntax_remedy(error: yaml.MarkedYAMLError, text: str) -> str:
    line = text.splitlines()[error.problem_mark.line : error.problem_mark.line + 1] if error.problem_mark else []
    if line and "\t" in line[0][: len(line[0]) - len(line[0].lstrip())]:
        return "indent with spaces, not tabs"
    if error.context and error.context_mark:
        return f"look at what starts on line {error.context_mark.line + 1} ({error.context})"
    return "close what is open and put quotes around special characters"


def _add_node(event: Any, building: _Building) -> None:
    mark = building.mark(event.start_mark)
    if building.wants_key():
        _add_key(event, mark, building)
        return
    if isinstance(event, yaml.AliasEvent):
        rule = "every value is written where it is used"
        building.note(mark, building.next_path(), f"alias *{event.anchor}", rule, "write the value out")
        building.add(None, mark)
        return
    if event.tag not in (None, "!"):
        remedy = "remove the tag; put quotes around text"
        building.note(mark, building.next_path(), f"tag {event.tag}", "values have no YAML tags", remedy)
    if isinstance(event, yaml.ScalarEvent):
        quoted = event.style in ("'", '"', "|", ">")
        building.add(event.value if quoted else plain_scalar(event.value), mark)
        return
    container: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
    path = building.add(container, mark)
    building.stack.append(_Open(container, path))
    if len(building.stack) > MAX_DEPTH:
        rule = f"inputs are nested {MAX_DEPTH} deep at most"
        top = path.partition(".")[0]
        building.refuse(mark, top, "brackets within brackets without end", rule, "check the file")


def _add_key(event: Any, mark: Mark, building: _Building) -> None:
    """Take a scalar as the key of the open mapping; anything but text, and a key given twice, is noted."""
    top = building.stack[-1]
    if not isinstance(event, yaml.ScalarEvent):
        building.refuse(mark, top.path, "a key that is no text", "keys are plain words", "write `key: value`")
    quoted = event.style in ("'", '"', "|", ">")
    if event.value == "<<" and not quoted:
        building.note(mark, top.path, "merge key <<", "every value is written where it is used", "write the keys out")
    elif not quoted and not isinstance(plain_scalar(event.value), str):
        what = f"key {event.value or 'without a name'} is no text"
        building.note(mark, top.path, what, "keys are text", "put the key in quotes")
    top.key = str(event.value)
    path = building.next_path()
    if top.key in top.value:
        first = building.keys[path].line
        building.note(mark, path, f"key {top.key!r} is given twice", f"it stands on line {first} already", "keep one")
    building.keys[path] = mark
