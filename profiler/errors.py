"""What a user of the profiler can cause and mend: one line with the place, the rule and the remedy, no traceback."""

from __future__ import annotations


class ProfileError(Exception):
    """A mistake that the user can mend. place: a file, `file:line` or the command; field: an option or a key."""

    def __init__(self, place: str, field: str, what: str, rule: str, remedy: str) -> None:
        super().__init__(place, field, what, rule, remedy)
        self.place, self.field, self.what, self.rule, self.remedy = place, field, what, rule, remedy

    def __str__(self) -> str:
        return f"{self.place}: {self.field}: {self.what}, {self.rule}, {self.remedy}"


class OutOfMemoryError(Exception):
    """A point does not fit into the device's memory: it is recorded, and points that need no less are skipped."""


class DeviceLostError(Exception):
    """The device answers no more in this process (a sticky CUDA error): a new process has to go on."""
