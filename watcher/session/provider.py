"""Which providers are asked for, with which options; and what the runtime then really did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from watcher.errors import ConfigError
from watcher.session import dialect
from watcher.session.compiled import Compiled, system_build
from watcher.session.trial import Trial

COREML = "CoreMLExecutionProvider"
CPU = "CPUExecutionProvider"
Wish = Literal["auto", "coreml", "cpu"]
Offer = tuple[str, dict[str, str]]

_SHORT = {COREML: "coreml", CPU: "cpu"}


@dataclass(frozen=True, slots=True)
class CoreMLOptions:
    """Options of the CoreML provider, in the runtime's own words.

    ``cache_dir`` with ``model_key`` (the model's SHA-256): compiled models are kept there. The provider's own key
    leaves out the content, the runtime, the system and the options, so the folder's name carries them.
    """

    compute_units: Literal["ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"] = "ALL"
    model_format: Literal["MLProgram", "NeuralNetwork"] = "MLProgram"
    cache_dir: Path | None = None
    model_key: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """How a session is opened.

    ``threads`` for the CPU provider, 0: one a core. ``lanes``: so many runs of the CPU provider may be under
    way at once, where it has as many threads. ``input_px`` (height, width) for graphs that leave it open.
    ``allow_fallback`` False: anything but ``provider`` is refused. ``trials_dir``: where verdicts and crash marks are
    kept; ``None``: nothing is tried or timed, CoreML is believed. ``anew``: what is remembered does not count.
    ``transformer``: the network is one, so other rungs are tried.
    """

    provider: Wish = "auto"
    allow_fallback: bool = True
    threads: int = 0
    lanes: int = 1
    coreml: CoreMLOptions = field(default_factory=CoreMLOptions)
    input_px: tuple[int, int] | None = None
    trials_dir: Path | None = None
    anew: bool = False
    transformer: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What was asked for and what runs. ``nodes`` counts graph nodes by provider; empty where the runtime is silent.

    ``partitions``: into how many pieces CoreML's share of the graph is cut; one is good, every border costs.
    ``provider`` is ``coreml`` when at least one node is there, read from the graph assignment and not believed.
    ``note`` is empty, or a sentence for people (a fallback, an old runtime). ``trials`` and ``decision``: how the
    providers did, and which was chosen; empty where there was no choice. ``decided_s``: seconds that choosing took,
    when it was done. ``trial_key``: under which the rung that runs is remembered.
    """

    requested: str
    provider: str
    nodes: dict[str, int]
    partitions: int
    load_ms: float
    warmup_ms: float
    runtime: str
    note: str = ""
    trials: tuple[Trial, ...] = ()
    decision: str = ""
    decided_s: float = 0.0
    trial_key: str = ""

    @property
    def fell_back(self) -> bool:
        return self.requested == "coreml" and self.provider != "coreml"


def choose(options: Options, available: Sequence[str]) -> tuple[str, str]:
    """(provider to open with, note). Raises ``ConfigError`` where the wish cannot be met and may not be bent."""
    if options.provider == "cpu" or (options.provider == "auto" and COREML not in available):
        return CPU, ""
    if COREML in available:
        return COREML, ""
    what = "CoreML was asked for, and this build of ONNX Runtime does not have it"
    if not options.allow_fallback:
        raise ConfigError(
            what,
            "Run on a Mac with Apple Silicon, or set model.provider to auto or cpu, or model.allow_fallback to true.",
        )
    return CPU, f"{what}; the CPU runs instead"


def offers(provider: str, options: CoreMLOptions, runtime: str, cache: Path | None = None) -> list[Offer]:
    """The explicit provider list, in the words of this runtime, checked before it is asked.

    Every value is a string, which is all that it takes. ``cache``: where compiled models are kept.
    """
    if provider == CPU:
        return [(CPU, {})]
    wishes = {
        "ModelFormat": options.model_format,
        "MLComputeUnits": options.compute_units,
        "RequireStaticInputShapes": "1",
        "EnableOnSubgraphs": "0",
    }
    if cache is not None:
        wishes["ModelCacheDirectory"] = str(cache)
    words = dialect.translate(wishes, runtime)
    dialect.check(words, runtime)
    return [(COREML, words), (CPU, {})]


def compiled(options: CoreMLOptions, runtime: str) -> Compiled | None:
    """The folder of compiled models for exactly this; ``None`` where none is wanted, or the runtime takes none."""
    if options.cache_dir is None or not options.model_key or dialect.version_of(runtime) < (1, 21):
        return None
    parts = (options.model_key[:16], runtime, options.model_format, options.compute_units, system_build())
    return Compiled(options.cache_dir, parts)


def assignment(inner: Any) -> tuple[dict[str, int], int]:
    """(nodes by provider, CoreML partitions), from the graph assignment; empty where the runtime records none."""
    nodes: Counter[str] = Counter()
    partitions = 0
    ask = getattr(inner, "get_provider_graph_assignment_info", None)
    if ask is not None:
        for part in ask():
            nodes[_SHORT.get(part.ep_name, part.ep_name)] += len(part.get_nodes())
            partitions += part.ep_name == COREML
    return dict(nodes), partitions


def obtained(inner: Any, nodes: dict[str, int]) -> str:
    """The provider that runs: by its nodes, or by registration where nodes are not known."""
    if nodes:
        return "coreml" if nodes.get("coreml") else next(iter(nodes))
    first = str(inner.get_providers()[0])
    return _SHORT.get(first, first)
