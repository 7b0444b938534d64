"""The photographs of the contact sheet: which they are, and where they come from."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LIST = Path(__file__).with_name("photos.toml")
PROJECT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Photo:
    """``source`` and ``licence`` are keys of photos.toml; ``subject`` is who shall stand out, or empty."""

    file: str
    source: str
    licence: str
    subject: str = ""


def photos() -> list[Photo]:
    """All photographs of the list."""
    said = tomllib.loads(LIST.read_text(encoding="utf-8"))["photo"]
    return [Photo(one["file"], one["from"], one["licence"], one.get("subject", "")) for one in said]


def fetched(place: Path) -> dict[str, Path]:
    """Folder of each source, in ``place`` where it had to be fetched; those that cannot be had here are left out.

    Python packages come with pip, as archives that are only unpacked; Debian's come with apt-get, where there is one.
    """
    found = {}
    for name, source in tomllib.loads(LIST.read_text(encoding="utf-8"))["sources"].items():
        root = PROJECT if source["kind"] == "project" else place / name
        if source["kind"] != "project" and not root.is_dir():
            try:
                _unpack(source["kind"], source["package"], root)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"no photographs of {source['package']}: {error}")
        if (root / source["folder"]).is_dir():
            found[name] = root / source["folder"]
    return found


def _unpack(kind: str, package: str, root: Path) -> None:
    """Fetch one package and lay its files in ``root``, which is whole or absent."""
    part = root.with_suffix(".part")
    part.mkdir(parents=True, exist_ok=True)
    if kind == "debian":
        subprocess.run(["apt-get", "download", package], cwd=part, check=True, capture_output=True)
        for archive in part.glob("*.deb"):
            subprocess.run(["dpkg", "-x", archive.name, "."], cwd=part, check=True)
    else:
        form = ["--only-binary", ":all:"] if kind == "wheel" else ["--no-binary", ":all:", "--no-build-isolation"]
        fetch = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", *form, "--dest", str(part), package]
        subprocess.run(fetch, check=True, capture_output=True)
        for archive in part.glob("*.whl"):
            zipfile.ZipFile(archive).extractall(part)
        for archive in part.glob("*.tar.gz"):
            with tarfile.open(archive) as whole:
                whole.extractall(part, filter="data")
    for archive in (*part.glob("*.deb"), *part.glob("*.whl"), *part.glob("*.tar.gz")):
        archive.unlink()
    part.rename(root)


def read_photo(path: Path) -> np.ndarray:
    """Upright RGB (h, w, 3) uint8, at most 1024 px wide or high."""
    import pillow_heif
    from PIL import Image, ImageOps

    pillow_heif.register_heif_opener()
    with Image.open(path) as picture:
        picture.draft("RGB", (1024, 1024))
        upright = ImageOps.exif_transpose(picture).convert("RGB")
    upright.thumbnail((1024, 1024))
    return np.asarray(upright)
