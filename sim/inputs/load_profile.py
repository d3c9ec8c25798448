"""From a profile's name or file to the profile; what is wrong with it is told in the file, or where it is named."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .catalog import profile_names, profile_path
from .errors import InputError
from .profile import ALL_TASKS, AcceptanceProfile, ChainLaw, Law, LookupLaw
from .source import MAX_CALIBRATION_BYTES, Finding, decode, file_defect, read_bytes
from .validation import validated
from .wording import did_you_mean, listed, shown
from .yaml_text import parse_mapping

_ENDINGS = (".json", ".yaml", ".yml")
Words = tuple[str, str, str]


class ProfileDefect(NamedTuple):
    """Why a reference to a profile leads nowhere: the key that is wrong (`name`, `task`), what, rule, remedy."""

    key: str
    what: str
    rule: str
    remedy: str


def profile_file(reference: str, base_dir: Path) -> Path | ProfileDefect:
    """The file that a reference names, a shipped profile first; relative paths start at base_dir."""
    shipped = profile_path(reference)
    if shipped is not None:
        return shipped
    if "/" not in reference and "\\" not in reference and not reference.endswith(_ENDINGS):
        known = profile_names()
        remedy = did_you_mean(reference, known, "name one of them, or the path of a file")
        return ProfileDefect("name", f"unknown profile {shown(reference)}", f"shipped are {listed(known)}", remedy)
    path = base_dir / reference
    defect = file_defect(path, MAX_CALIBRATION_BYTES)
    return ProfileDefect("name", *defect) if defect else path


def read_profile(path: Path) -> AcceptanceProfile:
    """Read and check a profile. Raises InputError with the place of everything that is wrong in it."""
    source = parse_mapping(decode(read_bytes(path, MAX_CALIBRATION_BYTES), str(path)), str(path), path.parent)
    stored, findings = validated(AcceptanceProfile, source.data)
    if stored is not None:
        findings += _law_findings(stored)
    problems = source.problems + [source.problem(finding) for finding in findings]
    if stored is None or problems:
        raise InputError(problems)
    return stored


def law_of_task(profile: AcceptanceProfile, task: str | None) -> Law | ProfileDefect:
    """The law of a task; None is all of them together."""
    law = profile.laws.get(task or ALL_TASKS)
    if law is not None:
        return law
    known = list(profile.laws)
    what = f"profile {profile.name} has no task {shown(task or ALL_TASKS)}"
    return ProfileDefect("task", what, f"it has {listed(known)}", did_you_mean(task, known, "name one of them"))


def _law_findings(profile: AcceptanceProfile) -> list[Finding]:
    """Vectors of one law that do not fit each other, and laws of another form than the profile's shape."""
    found = []
    for name, law in profile.laws.items():
        path = f"laws.{name}"
        if isinstance(law, LookupLaw) != (profile.shape == "lookup"):
            rule = "a lookup has laws of form ngram, chains and trees have form chain"
            found.append(Finding(f"{path}.form", f"{law.form} in a {profile.shape}", rule, "correct shape or form"))
        if law.centre is not None and len(law.centre) != len(law.conditional):
            what = f"{len(law.centre)} entries beside {len(law.conditional)}"
            found.append(Finding(f"{path}.centre", what, "as many as conditional", "correct one of them"))
        if isinstance(law, ChainLaw) and law.centre is None and law.length_link is not None:
            found.append(Finding(f"{path}.centre", "is missing", "a law with length_link states its centre", "add it"))
        if profile.fitted_k is not None and len(law.conditional) > profile.fitted_k:
            what = f"{len(law.conditional)} positions at fitted_k {profile.fitted_k}"
            found.append(Finding(f"{path}.conditional", what, "a log shows no later position", "correct one of them"))
        if isinstance(law, LookupLaw):
            for key in ("proposed", "centre_proposed"):
                shares = getattr(law, key) or []
                if any(share > before for before, share in zip([1.0, *shares], shares, strict=False)):
                    found.append(Finding(f"{path}.{key}", "rises", "these shares never rise", "correct the list"))
    return found
