"""Which format some bytes are, by content; and which names claim to be a picture. Imports no decoder."""

from __future__ import annotations

import re

NAMES: frozenset[str] = frozenset(
    f".{ending}"
    for ending in (
        "jpg",
        "jpeg",
        "jpe",
        "jfif",
        "png",
        "apng",
        "tif",
        "tiff",
        "webp",
        "bmp",
        "dib",
        "heic",
        "heif",
        "hif",
        "avif",
        "exr",
        "jp2",
        "j2k",
        "jpx",
        "jpf",
        "gif",
        "psd",
        "psb",
        "ppm",
        "pgm",
        "pbm",
        "pnm",
        "pfm",
        "hdr",
        "rgbe",
        "dng",
        "cr2",
        "nef",
        "arw",
        "jxl",
    )
)
"""Lower-case extensions that claim to be a picture. A claim, not a promise to read it: content decides."""

HEAD_BYTES = 64
"""How many bytes ``sniff`` wants to see."""

_HEIF_BRANDS = frozenset(b"heic heix hevc hevx heim heis hevm hevs mif1 mif2 msf1".split())
_AVIF_BRANDS = frozenset((b"avif", b"avis"))

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"II+\x00\x08\x00\x00\x00", "tiff"),
    (b"MM\x00+\x00\x08\x00\x00", "tiff"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"8BPS\x00\x01", "psd"),
    (b"8BPS\x00\x02", "psd"),
    (b"\x76\x2f\x31\x01", "exr"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "jp2"),
    (b"\xff\x4f\xff\x51", "jp2"),
    (b"#?RADIANCE", "hdr"),
    (b"#?RGBE", "hdr"),
    (b"\xff\x0a", "jxl"),
    (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "jxl"),
)
_PNM = re.compile(rb"P([1-6])[ \t\r\n#]")
_PFM = re.compile(rb"P[Ff]4?[ \t\r\n]")
_BMP_HEADERS = frozenset((12, 16, 40, 52, 56, 64, 108, 124))


def suffix(name: str) -> str:
    """The lower-case extension of a file name, with its dot; spaces at the end do not count. Empty when it has none."""
    stem, dot, last = name.rstrip().rpartition(".")
    return f".{last.lower()}" if dot and stem.strip() else ""


def claims_picture(name: str) -> bool:
    """Whether a file name says that a picture is inside (``Holiday.JPG``, ``x.jpg ``)."""
    return suffix(name) in NAMES


def sniff(head: bytes) -> str | None:
    """The format of a file by its first bytes (``HEAD_BYTES`` are enough), or None when it is no known picture.

    One of: jpeg, png, tiff, webp, bmp, heif, avif, gif, psd, pnm, pfm, hdr, exr, jp2, jxl.
    """
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    if head[4:8] == b"ftyp":
        return _brand(head)
    if head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in _BMP_HEADERS:
        return "bmp"
    if _PNM.match(head):
        return "pnm"
    return "pfm" if _PFM.match(head) else None


def _brand(head: bytes) -> str | None:
    """HEIF and AVIF share their boxes; the major brand decides, then the compatible ones (ISO/IEC 23008-12, 10)."""
    end = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, end - 3, 4))]
    if brands[0] in _AVIF_BRANDS or (brands[0] in (b"mif1", b"msf1") and not _AVIF_BRANDS.isdisjoint(brands)):
        return "avif"
    return "heif" if not _HEIF_BRANDS.isdisjoint(brands) else None


def describe(head: bytes) -> str:
    """What bytes that are no picture look like, for a person: ``a web page (HTML)``, ``text`` …"""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not head.strip(b"\0"):
        return "nothing but zeros"
    if text.startswith((b"<!doctype html", b"<html")):
        return "a web page (HTML)"
    if text.startswith((b"<svg", b"<?xml", b"<!doctype svg")):
        return "XML or SVG, which holds drawings and not pixels"
    if text.startswith((b"{", b"[")):
        return "JSON"
    if text.startswith(b"%pdf"):
        return "a PDF document"
    if text.startswith(b"\x00\x05\x16\x07"):
        return "an AppleDouble resource file"
    if text.startswith(b"bplist00"):
        return "a property list (perhaps a placeholder of iCloud)"
    printable = sum(32 <= byte < 127 or byte in b"\t\r\n" or byte >= 0xA0 for byte in head)
    return "text" if printable >= 0.97 * len(head) else "data of an unknown kind"
