"""``models list|pull|verify|prepare|bench|path``."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from watcher.cli.endings import ConfigOption, JsonOption, verb
from watcher.errors import ExitCode, UsageError, WatcherError

if TYPE_CHECKING:
    from pathlib import Path

    from watcher.catalog import Model, Recipe, Spec

app = typer.Typer(
    help="The models: list, pull, verify, prepare, bench, path.", no_args_is_help=True, rich_markup_mode=None
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]


@app.command("list", epilog="Example: depth-watcher models list")
@verb
def list_models(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Every model of the catalogue, with its size and licence."""
    from watcher import catalog
    from watcher import config as room

    folder = room.models_dir(room.load(room.find(config)))
    specs = catalog.manifest()
    if as_json:
        typer.echo(json.dumps([_as_json(spec, catalog.place(spec, folder).is_file()) for spec in specs], indent=2))
        return
    for spec in specs:
        here = "here" if catalog.place(spec, folder).is_file() else "not pulled"
        use = "commercial use allowed" if spec.commercial else "NON-COMMERCIAL use only"
        typer.echo(f"{spec.name:24} {spec.bytes / 1e6:7.1f} MB  {here:10}  {spec.licence} ({use})")
        typer.echo(f"{'':24} {spec.title}")


def _as_json(spec: Spec, here: bool) -> dict[str, object]:
    return {
        "name": spec.name,
        "title": spec.title,
        "bytes": spec.bytes,
        "sha256": spec.sha256,
        "licence": spec.licence,
        "commercial": spec.commercial,
        "embedded": spec.embedded,
        "url": spec.url,
        "here": here,
    }


@app.command(epilog="Example: depth-watcher models pull midas-v21-small")
@verb
def pull(
    name: NameArgument,
    accept: Annotated[
        bool, typer.Option("--accept-non-commercial", help="I have read the licence: no commercial use.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Fetch a model, checked by size and hash. What broke off goes on where it ended."""
    from watcher import catalog
    from watcher import config as room
    from watcher.durable import make_folder

    settings = room.load(room.find(config))
    spec = catalog.by_name(name)
    typer.echo(f"{spec.name}: {spec.licence}", err=True)
    if not spec.embedded:
        # Whoever comes first makes the state folder, and nobody else may write there.
        with contextlib.suppress(OSError):
            make_folder(room.state_dir(settings), 0o700)
    with _transfer(spec.name) as progress:
        path = catalog.pull(
            spec,
            room.models_dir(settings),
            mirror=settings.model.mirror,
            accept_noncommercial=accept,
            progress=progress,
        )
    typer.echo(f"{spec.name} is here and verified: {path}")
    try:
        _prepare(catalog.find(spec.name, room.models_dir(settings)), room.models_dir(settings), "static")
    except WatcherError as error:  # the model itself is there and works
        typer.echo(f"it was not prepared for CoreML: {error}", err=True)


def _prepare(model: Model, folder: Path, recipe: Recipe) -> None:
    from watcher.prepare import prepare

    done = prepare(model, folder, recipe)
    typer.echo(f"prepared for CoreML ({recipe}): {done.path}")
    typer.echo(f"  forecast before  {done.before}")
    typer.echo(f"  forecast after   {done.after}")
    typer.echo(
        f"  difference       mean {done.mean_difference:.4%}, largest {done.largest_difference:.4%} of the map's range"
    )


@app.command(epilog="Example: depth-watcher models prepare midas-v21-small --as trained")
@verb
def prepare(
    name: NameArgument = "auto",
    recipe: Annotated[
        str, typer.Option("--as", metavar="RECIPE", help="static: the same numbers; trained: see docs/coreml.md.")
    ] = "static",
    config: ConfigOption = None,
) -> None:
    """Rewrite a model's graph so that CoreML takes it whole; the original is kept."""
    from watcher import catalog
    from watcher import config as room

    if recipe not in ("static", "trained"):
        raise UsageError(f"there is no recipe {recipe!r}", "There are: static, trained.")
    folder = room.models_dir(room.load(room.find(config)))
    _prepare(catalog.find(name, folder), folder, "trained" if recipe == "trained" else "static")


@app.command(epilog="Example: depth-watcher models bench")
@verb
def bench(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Try and time every provider anew, and remember which one is best."""
    from dataclasses import asdict

    from watcher import config as room
    from watcher.network import Network

    network = Network(room.load(room.find(config)))
    with network.open_anew() as session:
        report = session.report
    if as_json:
        typer.echo(json.dumps({"model": network.name, **asdict(report)}, indent=2))
        return
    typer.echo(f"{network.name}, {report.runtime}")
    for trial in report.trials:
        typer.echo(f"  {trial}")
    typer.echo(f"chosen: {report.provider}" + (f" ({report.note})" if report.note else ""))


@contextmanager
def _transfer(name: str) -> Iterator[Callable[[int, int | None], None]]:
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@app.command(epilog="Example: depth-watcher models verify")
@verb
def verify(config: ConfigOption = None) -> int:
    """Hold every model that is here against its size and hash."""
    from watcher import catalog
    from watcher import config as room

    verdicts = catalog.verify(room.models_dir(room.load(room.find(config))))
    for verdict in verdicts:
        typer.echo(f"{verdict.state:8} {verdict.spec.name}: {verdict.detail}")
    return ExitCode.SOME_FAILED if any(verdict.state == "damaged" for verdict in verdicts) else ExitCode.DONE


@app.command(epilog="Example: depth-watcher models path starter")
@verb
def path(name: NameArgument = "auto", config: ConfigOption = None) -> None:
    """Where the verified file of a model is."""
    from watcher import catalog
    from watcher import config as room

    typer.echo(str(catalog.find(name, room.models_dir(room.load(room.find(config)))).path))
