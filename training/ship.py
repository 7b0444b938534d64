"""Is an exported network fit to be shipped? And the shipping: the file, its entry in the catalogue, its card."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from training.seen import seen
from watcher.catalog import Model, Spec
from watcher.prepare import prepare

# What CoreML's list of ONNX Runtime names as MLProgram operators and this network needs; Cast and Constant fold away.
OPERATORS = frozenset({"Conv", "Relu", "Add", "Sub", "Mul", "Div", "Concat", "Resize", "GlobalAveragePool", "Reshape"})
FOLDED = frozenset({"Cast", "Constant", "Identity"})
OPSET, MOST_BYTES, MOST_MS = 17, 8_000_000, 15.0
RUNS = 100


def checked(path: Path) -> dict[str, tuple[str, bool]]:
    """What was asked of the file: what was found, and whether it is good enough."""
    model = onnx.load(path)
    used = {node.op_type for node in model.graph.node} - FOLDED
    opset, size = model.opset_import[0].version, path.stat().st_size
    fixed = all(d.dim_value > 0 for v in model.graph.input for d in v.type.tensor_type.shape.dim)
    both, alone = milliseconds(path)
    with tempfile.TemporaryDirectory() as folder:
        made = prepare(_entry(path), Path(folder))
    return {
        "opset": (str(opset), opset == OPSET),
        "operators": (", ".join(sorted(used)), used <= OPERATORS),
        "shape": ("fixed" if fixed else "not fixed", fixed),
        "size": (f"{size} bytes", size <= MOST_BYTES),
        "time": (f"{both:.1f} ms on two threads at best, {alone:.1f} ms of one core", min(both, alone) <= MOST_MS),
        "forecast for CoreML, as it is": (str(made.before), True),
        "forecast for CoreML, prepared": (str(made.after), made.after.partitions == 1 and not made.after.unsupported),
        "prepared against original": (
            f"{made.largest_difference:.1e} of the range at most",
            made.largest_difference < 1e-3,
        ),
    }


def milliseconds(path: Path) -> tuple[float, float]:
    """Of a run: the shortest time on two threads, and the processor time on one, the median, both after five runs.

    Processor time is what the network needs however busy the machine is; two cores need no more than it.
    """
    both, alone = (_timed(path, threads, clock) for threads, clock in ((2, time.perf_counter), (1, time.thread_time)))
    return min(both), float(np.median(alone))


def _timed(path: Path, threads: int, clock: Callable[[], float]) -> list[float]:
    """Milliseconds of each run by ``clock``."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    picture = np.random.default_rng(0).random(entry.shape).astype(np.float32)
    took = []
    for _ in range(RUNS + 5):
        began = clock()
        session.run(None, {entry.name: picture})
        took.append((clock() - began) * 1000)
    return took[5:]


def parameters(path: Path) -> int:
    """How many numbers were learnt: all constants but those of one value and the planes of coordinates."""
    values = [numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer]
    return sum(value.size for value in values if value.dtype in (np.float16, np.float32) and not _made(value))


def ship(path: Path, models: Path) -> str:
    """Put ``path`` in the place of the embedded network: the file, its entry in manifest.toml, its row of the card.

    Refused (SystemExit) when it is not fit, or when nobody looked at its contact sheet. Returns what is left to do.
    """
    found = checked(path)
    if wrong := [f"{name}: {said}" for name, (said, good) in found.items() if not good]:
        raise SystemExit("not fit to be shipped:\n" + "\n".join(wrong))
    if "lifted off" not in (told := seen(path)):
        raise SystemExit(f"{told}: make it (python -m training sheet), look, and write it down in training/looked.toml")
    content = path.read_bytes()
    manifest, card = models / "manifest.toml", models / "README.md"
    text = manifest.read_text(encoding="utf-8")
    head, entry, rest = _apart(text)
    entry = re.sub(r"(?m)^bytes = \d+$", f"bytes = {len(content)}", entry)
    entry = re.sub(r'(?m)^sha256 = "\w+"$', f'sha256 = "{hashlib.sha256(content).hexdigest()}"', entry)
    entry = re.sub(r"(?m)^parameters = [\d_]+$", f"parameters = {round(parameters(path), -4):_}", entry)
    row = re.sub(r"(?m)(\| file \| `starter\.onnx`, )[\d ]+( bytes)", rf"\g<1>{len(content):,}\g<2>", _read(card))
    shutil.copyfile(path, models / "starter.onnx")
    manifest.write_text(head + entry + rest, encoding="utf-8")
    card.write_text(row.replace(f"{len(content):,}", f"{len(content):,}".replace(",", " ")), encoding="utf-8")
    return REST


REST = """shipped: models/starter.onnx, its entry in models/manifest.toml, its size in models/README.md. Still to do:
1. python -m training pictures    the pictures of README.md and docs/outputs.md, with the new maps; look at them
2. python -m training evaluate    (and once --half test): its tables into models/README.md and docs/starter.md
3. python -m bench.refine         the table of edges in docs/outputs.md; python -m bench.flicker: that of flicker there
4. python -m training check       the row of docs/coreml.md, the time and operators of models/README.md
5. make demo; make test           what the examples make; the tests that hold hash, size, card and forecast"""


def report(path: Path) -> str:
    """A Markdown table of what was found, with what is not good enough marked."""
    found = checked(path).items()
    rows = [f"| {name} | {said}{'' if good else ' **(not good enough)**'} |" for name, (said, good) in found]
    return "\n".join([f"| {path.name} | |", "|---|---|", *rows, f"| parameters | {parameters(path)} |"])


def _entry(path: Path) -> Model:
    """The file as the catalogue would know it."""
    side = int(onnx.load(path).graph.input[0].type.tensor_type.shape.dim[2].dim_value)
    spec = Spec("starter", path.name, input="image", input_px=(side, side))
    return Model(spec, path, hashlib.sha256(path.read_bytes()).hexdigest())


def _made(value: np.ndarray) -> bool:
    """Is it a plane of coordinates or the like, which nobody learnt?"""
    return (value.ndim == 4 and value.shape[:2] == (1, 2)) or value.size <= 3


def _apart(text: str) -> tuple[str, str, str]:
    """A manifest as what is before, in and after the entry of the embedded network."""
    start = text.index('[[model]]\nname = "starter"')
    end = text.index("[[model]]", start + 1)
    return text[:start], text[start:end], text[end:]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
