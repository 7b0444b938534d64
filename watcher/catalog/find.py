"""From a name or a path to a verified file and what is known of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from watcher.catalog import spec as specs
from watcher.catalog.spec import Spec
from watcher.errors import ModelError

HOW_TO_PULL = "`depth-watcher models pull midas-v21-small` fetches MiDaS."
STARTER = f"This is the embedded starter network: for a first look and for tests, not MiDaS. {HOW_TO_PULL}"


@dataclass(frozen=True, slots=True)
class Model:
    """A file that is what it claims to be. ``notice``: what a person should be told about it, or ""."""

    spec: Spec
    path: Path
    sha256: str
    notice: str = ""

    @property
    def name(self) -> str:
        return self.spec.name


@dataclass(frozen=True, slots=True)
class Verdict:
    """What ``verify`` found of one model. ``state`` unsure: whole by its size, but no hash is known to hold it to."""

    spec: Spec
    path: Path
    state: Literal["ok", "damaged", "absent", "unsure"]
    detail: str
    sha256: str = ""


def place(spec: Spec, models_dir: Path) -> Path:
    """Where the model's file is, or would be."""
    return (specs.embedded_dir() if spec.embedded else models_dir) / spec.file


def record_path(path: Path) -> Path:
    """The file that keeps the hash of a first pull, in the format that ``shasum -c`` reads."""
    return path.with_name(f"{path.name}.sha256")


def find(name: str, models_dir: Path) -> Model:
    """The model for a name of the catalogue, for ``auto``, or for the path of an .onnx file; verified.

    ``auto`` is the pulled model of the highest rank, else the starter, with a notice that says so. A file of the
    user's own that is byte for byte one of the catalogue gets that entry. Raises ``ModelError``: unknown name, not
    pulled yet, damaged, no such file.
    """
    if name == "auto":
        return _best(models_dir)
    if _is_path(name):
        return _of_path(Path(name).expanduser(), models_dir)
    spec = specs.by_name(name)
    return _checked(spec, models_dir)


def verify(models_dir: Path) -> list[Verdict]:
    """Every model of the catalogue, held against its size and hash. Reads every byte of what is there."""
    return [judge(spec, place(spec, models_dir)) for spec in specs.manifest()]


def digest(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits. Raises ``ModelError`` where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}", "Check the path and its permissions.") from error


def recorded(path: Path) -> str:
    """The hash kept at the first pull, or "" where there is none."""
    try:
        return record_path(path).read_text(encoding="ascii").split()[0]
    except (OSError, UnicodeDecodeError, IndexError):
        return ""


def _best(models_dir: Path) -> Model:
    ranked = sorted(specs.manifest(), key=lambda spec: spec.rank, reverse=True)
    for spec in ranked:
        if not spec.embedded and place(spec, models_dir).is_file():
            return _checked(spec, models_dir)
    return _checked(next(spec for spec in ranked if spec.embedded), models_dir)


def _checked(spec: Spec, models_dir: Path) -> Model:
    verdict = judge(spec, place(spec, models_dir))
    again = "Install this program again." if spec.embedded else f"`depth-watcher models pull {spec.name}` fetches it."
    if verdict.state == "absent":
        raise ModelError(f"{spec.name} has not been pulled yet", again)
    if verdict.state == "damaged":
        raise ModelError(f"{verdict.path} is damaged: {verdict.detail}", again)
    notice = STARTER if spec.embedded else ""
    if verdict.state == "unsure":
        notice = f"{spec.name}: {verdict.detail}"
    return Model(spec, verdict.path, verdict.sha256, notice)


def judge(spec: Spec, path: Path) -> Verdict:
    """Hold one file against what is known of it."""
    if not path.is_file():
        return Verdict(spec, path, "absent", "not pulled")
    size = path.stat().st_size
    if spec.bytes and size != spec.bytes:
        return Verdict(spec, path, "damaged", f"it has {size} bytes instead of {spec.bytes}")
    found = digest(path)
    wanted = spec.sha256 or recorded(path)
    if not wanted:
        return Verdict(
            spec, path, "unsure", "nobody has published a hash to hold it to, and it was not pulled here", found
        )
    if found != wanted:
        return Verdict(spec, path, "damaged", f"its SHA-256 is {found} instead of {wanted}", found)
    detail = "as published" if spec.sha256 else "as at its first pull; no hash is published"
    return Verdict(spec, path, "ok", detail, found)


def _is_path(name: str) -> bool:
    return name.lower().endswith(".onnx") or "/" in name


def _of_path(path: Path, models_dir: Path) -> Model:
    """A relative path is looked for where the program was started, then in the models folder."""
    if not path.is_file() and (models_dir / path).is_file():
        path = models_dir / path
    if not path.is_file():
        raise ModelError(
            f"there is no model file {path}", "Give the path of an .onnx file, or a name of the catalogue."
        )
    found = digest(path)
    for spec in specs.manifest():
        if found == spec.sha256:
            return Model(spec, path, found, STARTER if spec.embedded else "")
    return Model(
        specs.beside(path),
        path,
        found,
        f"{path.name} is not in the catalogue: its licence is yours to know, and it is fed RGB in 0..1 "
        f"unless {path.stem}.toml beside it says otherwise.",
    )
