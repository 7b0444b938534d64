"""The settings, frozen. The classes are the one source: config.yaml, the JSON Schema and the tables are held to them.

Attribute paths are the key paths of the file: ``settings.folders[0].output.format``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from watcher.config import presets
from watcher.config.outputs import Output
from watcher.config.paths import DEFAULT_INBOX, beside
from watcher.config.section import Section
from watcher.config.values import (
    Address,
    AnyPath,
    HostAddress,
    LogFile,
    ModelName,
    as_tuple,
    is_loopback,
)


class Folder(Section):
    """One inbox and where its frames go."""

    inbox: AnyPath = Field(description="The folder that is watched.", examples=[DEFAULT_INBOX])
    outbox: AnyPath = Field(
        default_factory=lambda data: beside(data["inbox"], "outbox"),
        description="The folder that maps are written to. Default: beside the inbox.",
        examples=["~/DepthWatcher/outbox"],
    )
    processed: AnyPath = Field(
        default_factory=lambda data: beside(data["inbox"], "processed"),
        description="Where sources go after success with after: move. Default: beside the inbox.",
        examples=["~/DepthWatcher/processed"],
    )
    failed: AnyPath = Field(
        default_factory=lambda data: beside(data["inbox"], "failed"),
        description="The quarantine: sources that cannot be done, each with its reason. Default: beside the inbox.",
        examples=["~/DepthWatcher/failed"],
    )
    after: Literal["move", "keep", "delete"] = Field(
        default="move", description="What happens to a source once its map is safe in the outbox."
    )
    recursive: bool = Field(default=True, description="Watch sub-folders too; they are mirrored in the outbox.")
    ignore: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        default=(),
        description="Globs of names to leave alone, on top of the built-in list.",
        examples=[["*_depth.png"]],
    )
    preset: Literal["resolve", "blender", "after-effects", "photoshop", "nuke", "final-cut"] | None = Field(
        default=None,
        description="Defaults of output for one application; keys given under output win.",
        examples=["resolve"],
    )
    output: Output = Field(default_factory=lambda: Output(), description="How a map is written.")

    @model_validator(mode="before")
    @classmethod
    def _fill_preset(cls, data: Any) -> Any:
        return presets.fill(data)


class Watch(Section):
    """How files are noticed."""

    observer: Literal["auto", "native", "polling"] = Field(
        default="auto", description="How changes are noticed; auto polls on network volumes only."
    )
    settle_s: float = Field(
        default=0.5,
        ge=0,
        le=3600,
        description="Seconds without a change after which a file counts as completely written.",
    )
    rescan_s: float = Field(
        default=30.0,
        ge=0.1,
        le=86400,
        description="Seconds between looks at the whole inbox, for events that never came.",
    )
    patience_s: float = Field(
        default=600.0,
        ge=0,
        le=604800,
        description="Seconds that a truncated file which no longer changes waits before it counts as failed.",
    )
    fetch_dataless: bool = Field(
        default=False, description="Bring in files that are only in iCloud, one at a time; false: they are left there."
    )
    shot_settle_s: float = Field(
        default=10.0,
        ge=0,
        le=86400,
        description="With range: shot, seconds without a new frame after which a shot is complete.",
    )


class CoreML(Section):
    """Options of the CoreML provider; without effect elsewhere."""

    compute_units: Literal["ALL", "CPUAndNeuralEngine", "CPUAndGPU", "CPUOnly"] = Field(
        default="ALL", description="What CoreML may compute on."
    )
    model_format: Literal["MLProgram", "NeuralNetwork"] = Field(
        default="MLProgram", description="The form that the network is compiled to."
    )
    cache: bool = Field(
        default=True, description="Keep the compiled network in the state folder, for a quick next start."
    )


class Model(Section):
    """The network and what runs it."""

    name: ModelName = Field(
        default="auto",
        description="auto (the best one that is there), a name of the catalogue, or the path of an .onnx file.",
        examples=["midas-v21-small"],
    )
    dir: AnyPath | None = Field(
        default=None, description="Folder of pulled models; null: the user's data folder.", examples=["~/Models"]
    )
    provider: Literal["auto", "coreml", "cpu"] = Field(default="auto", description="What runs the network.")
    allow_fallback: bool = Field(
        default=True, description="false: refuse to run on anything but what provider asks for, instead of saying so."
    )
    coreml: CoreML = Field(default_factory=lambda: CoreML(), description="Options of the CoreML provider.")
    threads: int = Field(default=0, ge=0, le=256, description="Threads of the cpu provider; 0: one a core.")
    resample: Literal["auto", "reference"] = Field(
        default="auto",
        description="reference: the published arithmetic to the last digit; auto: smoother large reductions.",
    )
    graph: Literal["auto", "original", "trained"] = Field(
        default="auto",
        description="auto: prepared for CoreML where that may run; original: as published; "
        "trained: MiDaS-small with the resizes that it was trained with.",
    )
    mirror: Address | None = Field(
        default=None,
        description="Base address that models are pulled from instead of their own; null: none.",
        examples=["https://mirror.example.com/models"],
    )


class Limits(Section):
    """Where patience ends."""

    max_attempts: int = Field(
        default=3,
        ge=1,
        le=100,
        description="Tries of a frame that crashes or hangs the process, in all, before quarantine.",
    )
    run_timeout_s: float = Field(
        default=120.0, ge=0.1, le=86400, description="Seconds that one run of the network may take."
    )
    load_timeout_s: float = Field(
        default=900.0, ge=1, le=86400, description="Seconds that loading and compiling the network may take."
    )
    max_pixels: int = Field(
        default=400_000_000, ge=1, le=10_000_000_000, description="Pixels (width times height) of the largest picture."
    )
    max_file_mb: int = Field(
        default=1024, ge=1, le=1_000_000, description="Megabytes (1,000,000 bytes) of the largest file that is read."
    )
    shot_mb: int = Field(
        default=4096,
        ge=1,
        le=10_000_000,
        description="Megabytes of raw maps kept for open shots; beyond, a shot settles with what is there.",
    )
    max_memory_mb: int = Field(
        default=0,
        ge=0,
        le=10_000_000,
        description="Megabytes in memory beyond which the daemon ends, to be started again; 0: half the machine's.",
    )


class Log(Section):
    """What is told, and where."""

    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="The least that is told.")
    file: LogFile = Field(
        default="auto",
        description="auto: the usual place of the system; or a path.",
        examples=["~/Desktop/depth-watcher.log"],
    )
    format: Literal["text", "json"] = Field(default="text", description="json: one object a line, for programs.")


class Api(Section):
    """The local service: /predict, the status page, metrics."""

    enabled: bool = Field(default=False, description="Listen at all; false: no socket, nothing of it is loaded.")
    host: HostAddress = Field(
        default="127.0.0.1",
        description="Address to listen on; anything but this machine's own needs expose: true.",
        examples=["127.0.0.1"],
    )
    port: int = Field(default=8765, ge=1, le=65535, description="Port of the service.")
    expose: bool = Field(
        default=False, description="Allow a host that other machines reach; they need the token for everything."
    )
    names: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        default=(),
        description="Further names that a request may address the service by; others are refused.",
        examples=[["studio.local"]],
    )
    require_token: bool = Field(
        default=False, description="Ask for the token of the state folder also on this machine, /healthz excepted."
    )
    backlog: int = Field(default=16, ge=1, le=1000, description="Pictures that may wait; one more is answered 429.")
    max_mb: int = Field(
        default=100, ge=1, le=10_000, description="Megabytes (1,000,000 bytes) of the largest picture that is taken."
    )
    timeout_s: float = Field(
        default=60.0, ge=0.1, le=3600, description="Seconds after which a picture that is not done is answered 503."
    )
    frame_file: AnyPath | None = Field(
        default=None,
        description="The picture that an empty POST to /predict stands for; needs map_file.",
        examples=["tmp/frame.jpg"],
    )
    map_file: AnyPath | None = Field(
        default=None,
        description="Where an empty POST to /predict puts its map; needs frame_file.",
        examples=["tmp/depth.jpg"],
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Api:
        if (self.frame_file is None) != (self.map_file is None):
            raise ValueError("frame_file and map_file belong together: give both, or neither")
        if self.frame_file is not None and self.frame_file == self.map_file:
            raise ValueError("map_file would replace frame_file; give it another name")
        if self.map_file is not None and self.map_file.suffix.lower() not in (".jpg", ".png"):
            raise ValueError("map_file has to end with .jpg or .png")
        if not self.expose and not is_loopback(self.host):
            raise ValueError(f"host {self.host} can be reached by other machines; add expose: true if that is meant")
        return self


def _one_folder() -> tuple[Folder, ...]:
    return (Folder.model_validate({"inbox": DEFAULT_INBOX}),)


class Settings(Section):
    """Everything; every key has a default, so an empty file works."""

    folders: Annotated[tuple[Folder, ...], BeforeValidator(as_tuple)] = Field(
        default_factory=_one_folder, min_length=1, description="The inboxes, each with its own destinations and output."
    )
    watch: Watch = Field(default_factory=lambda: Watch(), description="How files are noticed.")
    model: Model = Field(default_factory=lambda: Model(), description="The network and what runs it.")
    limits: Limits = Field(default_factory=lambda: Limits(), description="Where patience ends.")
    log: Log = Field(default_factory=lambda: Log(), description="What is told, and where.")
    api: Api = Field(default_factory=lambda: Api(), description="The local service.")
    notify: bool = Field(
        default=False,
        description="Notifications when a batch has ended or pictures failed; `install` adds a helper that shows them.",
    )
    state_dir: AnyPath | None = Field(
        default=None,
        description="Folder of journal, lock and caches; null: the user's data folder.",
        examples=["~/.depth"],
    )
