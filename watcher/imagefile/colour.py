"""Whatever the numbers of a picture mean, as sRGB: profiles, coded primaries, gamma, CMYK, Lab, linear light."""

from __future__ import annotations

import io

import numpy as np

from . import light, profile
from .picture import Array, Stored

_SRGB_GAMMA = 1 / 2.2
# Linear sRGB from XYZ under D50, scaled: for CIELab, whose white is D50 (ICC.1:2022, annex A).
_D50 = (0.9642, 1.0, 0.8249)


def to_srgb(stored: Stored) -> tuple[Array, tuple[str, ...]]:
    """((H, W, 3) sRGB of the same dtype as stored, notes). Gray becomes three equal channels."""
    samples = stored.samples
    notes: tuple[str, ...] = ()
    if stored.space == "LAB":
        return _from_lab(samples), ("converted from CIELab",)
    if samples.dtype == np.float32:
        samples, notes = _from_float(stored)
    elif stored.icc:
        samples, notes = _from_icc(samples, stored.icc, stored.space)
    elif stored.coded and not light.coded_is_srgb(*stored.coded):
        samples, notes = _from_coded(samples, *stored.coded)
    elif stored.gamma is not None and abs(stored.gamma - _SRGB_GAMMA) > 0.01 and stored.space != "CMYK":
        samples, notes = _from_gamma(samples, stored.gamma), (f"converted from gamma {1 / stored.gamma:.2f}",)
    if samples.ndim == 3 and samples.shape[2] == 4:
        samples = _from_cmyk(samples)
    return (samples if samples.ndim == 3 else np.repeat(samples[..., None], 3, axis=2)), notes


def _full(dtype: np.dtype[np.generic]) -> int:
    return 65535 if dtype == np.uint16 else 255


def _quantised(values: light.Float32, like: Array) -> Array:
    full = _full(like.dtype)
    return (np.clip(values, 0.0, 1.0) * full + 0.5).astype(like.dtype)


def _from_float(stored: Stored) -> tuple[Array, tuple[str, ...]]:
    values, bad = light.finite(stored.samples)
    notes: tuple[str, ...] = (f"{bad} values were not finite",) if bad else ()
    linear = profile.to_linear_srgb(values, stored.icc) if stored.icc else None
    if linear is None and not stored.scene and float(values.min()) >= 0.0 and float(values.max()) <= 1.0:
        return values, notes
    shown, stops = light.display(values if linear is None else linear)
    said = f"linear light, exposure {stops:+d} stops" if stops else "linear light"
    return shown, (*notes, said)


def _from_icc(samples: Array, icc: bytes, space: str) -> tuple[Array, tuple[str, ...]]:
    from PIL import ImageCms

    try:
        opened = ImageCms.ImageCmsProfile(io.BytesIO(icc))
        name = ImageCms.getProfileDescription(opened).strip()
        if name.startswith("sRGB") and space == "RGB":
            return samples, ()
        if opened.profile.xcolor_space.strip() != space:
            return samples, ("its colour profile belongs to another kind of picture and was ignored",)
        if samples.dtype == np.uint16:
            exact = profile.to_linear_srgb(samples.astype(np.float32) / np.float32(65535), icc)
            if exact is not None:
                return _quantised(light.encode_srgb(exact), samples), (f"converted from {name}",)
            eight = _through_lcms((samples >> 8).astype(np.uint8), opened, space)
            return eight.astype(np.uint16) * 257, (f"converted from {name} in 8 bits",)
        return _through_lcms(samples, opened, space), (f"converted from {name}",)
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return samples, ("its colour profile is damaged and was ignored",)


def _through_lcms(samples: Array, opened: object, space: str) -> Array:
    """8-bit samples through Little CMS, relative colorimetric with black point compensation."""
    from PIL import Image, ImageCms

    mode = {"GRAY": "L", "RGB": "RGB", "CMYK": "CMYK"}[space]
    transform = ImageCms.buildTransform(
        opened,  # type: ignore[arg-type]
        ImageCms.createProfile("sRGB"),
        mode,
        "RGB",
        ImageCms.Intent.RELATIVE_COLORIMETRIC,
        ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    height, width = samples.shape[:2]
    image = Image.frombuffer(mode, (width, height), np.ascontiguousarray(samples), "raw", mode, 0, 1)
    shown = ImageCms.applyTransform(image, transform)
    return np.asarray(shown if shown is not None else image)


def _from_coded(samples: Array, primaries: int, transfer: int) -> tuple[Array, tuple[str, ...]]:
    signal = _rgb(samples).astype(np.float32) / np.float32(_full(samples.dtype))
    linear, hdr = light.from_coded(signal, primaries, transfer)
    shown = light.display(linear)[0] if hdr else light.encode_srgb(linear)
    names = [light.NAMED_PRIMARIES.get(primaries, ""), {16: "PQ", 18: "HLG", 8: "linear"}.get(transfer, "")]
    return _quantised(shown, samples), (f"converted from {' '.join(filter(None, names))}",)


def _from_gamma(samples: Array, gamma: float) -> Array:
    """PNG 3rd edition, 13.13: sample = light ** gamma, so light = sample ** (1 / gamma), then the sRGB curve."""
    full = _full(samples.dtype)
    ramp = np.linspace(0, 1, full + 1, dtype=np.float32)
    table = light.encode_srgb(np.power(ramp, 1 / gamma, dtype=np.float32))
    return (table * full + 0.5).astype(samples.dtype)[samples]


def _from_cmyk(samples: Array) -> Array:
    """CMYK (0 = no ink) without a profile: each ink only takes light away."""
    full = _full(samples.dtype)
    free = full - samples.astype(np.uint32)
    return ((free[..., :3] * free[..., 3:] + full // 2) // full).astype(samples.dtype)


def _from_lab(samples: Array) -> Array:
    """CIELab (H, W, 3) as TIFF stores it (L 0..full, a and b signed; TIFF 6.0 section 23) to sRGB."""
    sixteen = samples.dtype == np.uint16
    full, signed = _full(samples.dtype), np.int16 if sixteen else np.int8
    lightness = samples[..., 0].astype(np.float32) * np.float32(100 / full)
    ab = samples[..., 1:].view(signed).astype(np.float32) / (256 if sixteen else 1)
    fy = (lightness + 16) / 116
    f = np.stack((fy + ab[..., 0] / 500, fy, fy - ab[..., 1] / 200), axis=-1)
    xyz = np.where(f > 6 / 29, f**3, (f - 4 / 29) * 3 * (6 / 29) ** 2) * np.array(_D50, np.float32)
    return _quantised(light.encode_srgb((xyz @ profile.SRGB_FROM_D50.T).astype(np.float32)), samples)


def _rgb(samples: Array) -> Array:
    return samples if samples.ndim == 3 else np.repeat(samples[..., None], 3, axis=2)
