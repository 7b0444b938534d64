"""The words in which each version of ONNX Runtime takes CoreML's options, and a check before it is asked.

A wrong key or value is not harmless: left to itself the Python class prints a line and runs on the CPU instead.

Sources: the runtime's pull requests 21434 (``flags``), 22675, 22975 and 23065 (named options), and the strings that its
1.32 library accepts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from watcher.errors import SessionError

Version = tuple[int, int]

_NAMED: Version = (1, 21)
_FLAGS: Version = (1, 20)
_SWITCH = frozenset({"0", "1"})
_ALLOWED: dict[str, frozenset[str] | None] = {
    "ModelFormat": frozenset({"NeuralNetwork", "MLProgram"}),
    "MLComputeUnits": frozenset({"ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"}),
    "RequireStaticInputShapes": _SWITCH,
    "EnableOnSubgraphs": _SWITCH,
    "SpecializationStrategy": frozenset({"Default", "FastPrediction"}),
    "ProfileComputePlan": _SWITCH,
    "AllowLowPrecisionAccumulationOnGPU": _SWITCH,
    "ModelCacheDirectory": None,  # any path
}
_FLAG_WORDS = frozenset(
    {
        "COREML_FLAG_USE_CPU_ONLY",
        "COREML_FLAG_USE_CPU_AND_GPU",
        "COREML_FLAG_ONLY_ALLOW_STATIC_INPUT_SHAPES",
        "COREML_FLAG_CREATE_MLPROGRAM",
    }
)


def version_of(text: str) -> Version:
    """(major, minor) of ``1.32.0``; what cannot be read counts as newest."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (9, 0)


def takes_options(runtime: str) -> bool:
    """Before 1.20 the Python class passes nothing on to CoreML, whatever it is given."""
    return version_of(runtime) >= _FLAGS


def translate(wishes: Mapping[str, str], runtime: str) -> dict[str, str]:
    """The named options in the words of this runtime: as they are, as ``flags``, or not at all.

    Raises ``SessionError`` for what no version would take.
    """
    check(wishes, "1.32")
    version = version_of(runtime)
    if version >= _NAMED:
        return dict(wishes)
    if version < _FLAGS:
        return {}
    words = []
    if wishes.get("MLComputeUnits") == "CPUOnly":
        words.append("COREML_FLAG_USE_CPU_ONLY")
    if wishes.get("MLComputeUnits") == "CPUAndGPU":
        words.append("COREML_FLAG_USE_CPU_AND_GPU")
    if wishes.get("RequireStaticInputShapes") == "1":
        words.append("COREML_FLAG_ONLY_ALLOW_STATIC_INPUT_SHAPES")
    if wishes.get("ModelFormat") == "MLProgram":
        words.append("COREML_FLAG_CREATE_MLPROGRAM")
    return {"flags": "|".join(words)} if words else {}


def check(options: Mapping[str, object], runtime: str) -> None:
    """Raises ``SessionError`` naming the first option that this runtime would refuse, or would drop unread."""
    version = version_of(runtime)
    for key, value in options.items():
        if not isinstance(value, str):
            raise SessionError(f"CoreML's option {key} is {value!r}; the runtime takes only text")
        if version < _FLAGS:
            raise SessionError(f"ONNX Runtime {runtime} passes no option on to CoreML, {key} would be dropped")
        if version < _NAMED or key == "flags":
            _check_flags(key, value, len(options))
            continue
        if key not in _ALLOWED:
            raise SessionError(f"CoreML has no option {key}")
        allowed = _ALLOWED[key]
        if allowed is not None and value not in allowed:
            raise SessionError(f"CoreML's option {key} is {value!r}; it takes {', '.join(sorted(allowed))}")


def _check_flags(key: str, value: str, count: int) -> None:
    if key != "flags":
        raise SessionError(f"this ONNX Runtime knows only the option flags, not {key}")
    if count > 1:
        raise SessionError("beside flags every other option of CoreML is ignored")
    for word in value.split("|"):
        if word not in _FLAG_WORDS:
            raise SessionError(f"CoreML has no flag {word}")
