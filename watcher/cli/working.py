"""``run``, ``once`` and ``depth``: the verbs that make maps."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from watcher.cli.endings import ConfigOption, complain, printable, verb
from watcher.errors import Blame, ExitCode, NoInput, UsageError, WatcherError, by_hand

if TYPE_CHECKING:
    from watcher import config, status
    from watcher.frame import Frame, Outcome

AFTER = ("move", "keep", "delete")


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: depth-watcher run --config ~/depth.yaml")(run)
    app.command(epilog="Example: depth-watcher once --inbox shots --outbox maps --after keep")(once)
    app.command(epilog="Example: depth-watcher depth photo.jpg -o maps")(depth)


@verb
def run(config: ConfigOption = None) -> int:
    """The daemon, in the foreground: turns what is dropped into the inbox into depth maps. Ctrl-C ends it."""
    from watcher import agent_label

    try:
        return _run(config, quiet=agent_label.under_launchd())
    except WatcherError as error:
        permanent = error.blame in (Blame.CONFIG, Blame.USAGE) and error.exit_code != ExitCode.TRY_LATER
        if permanent and agent_label.under_systemd():
            _leave_word(error, config)  # systemd knows by the number that no restart mends it
        if not (permanent and agent_label.under_launchd()):
            raise
        # launchd starts again whatever ends with an error; only an ending with 0 stops a loop that cannot heal.
        complain(error)
        _leave_word(error, config)
        return ExitCode.DONE


def _run(path: Path | None, *, quiet: bool) -> int:
    from watcher import config, daemon, logbook
    from watcher.daemon import beginning

    if quiet:
        beginning.shorten(sys.stderr.fileno())
    beginning.raise_file_limit()
    beginning.listen_for_processes()
    found = config.find(path)
    settings = config.load(found)
    logbook.open_log(settings.log.level, settings.log.format, config.log_file(settings), None if quiet else sys.stderr)
    log = logging.getLogger("watcher.cli")
    log.info("settings: %s", found or "the defaults")
    for folder in settings.folders:
        log.info("inbox %s -> outbox %s", folder.inbox, folder.outbox)
    return daemon.Daemon(settings).run()


def _leave_word(error: WatcherError, path: Path | None) -> None:
    """Where `status` and the log will say why no daemon runs: where the settings say, if they can be read at all."""
    from watcher import config, durable, logbook, status

    try:
        settings = config.load(config.find(path))
    except WatcherError:
        settings = config.load(None)
    logbook.open_log("info", "text", config.log_file(settings))
    logging.getLogger("watcher.cli").error("not started: %s %s", error, " ".join(getattr(error, "problems", ())))
    state_dir = config.state_dir(settings)
    durable.make_folder(state_dir, 0o700)
    status.write(state_dir, status.Snapshot(state="stopped", reason=str(error)))


@verb
def once(
    inbox: Annotated[Path | None, typer.Option(metavar="DIR", help="Take pictures from here.")] = None,
    outbox: Annotated[Path | None, typer.Option(metavar="DIR", help="Put maps here.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Use this model.")] = None,
    after: Annotated[str | None, typer.Option(metavar="|".join(AFTER), help="What happens to the pictures.")] = None,
    config: ConfigOption = None,
) -> int:
    """Everything that is in the inbox now, then exit. 0: all done; 1: some failed, see the failed folder."""
    from watcher import config as settings_room
    from watcher import daemon, logbook

    overrides: dict[str, Any] = {}
    if after is not None and after not in AFTER:
        raise UsageError(f"--after {after} is not known", f"It is one of {', '.join(AFTER)}.")
    found = settings_room.find(config)
    if inbox is not None or outbox is not None:
        overrides.update(_one_folder(found, inbox, outbox))
    settings = settings_room.load(found, {**overrides, "model.name": model, "folders[0].after": after})
    for folder in settings.folders:
        if not folder.inbox.is_dir():
            raise NoInput(f"there is no inbox {folder.inbox}", "Create it and drop pictures into it.")
    logbook.open_log(settings.log.level, settings.log.format, settings_room.log_file(settings))
    with _progress(settings) as show:
        life = daemon.Daemon(settings, once=True, tell=show.snapshot, heard=show.ended)
        code = life.run()
    show.summary(life.tally.done, life.tally.failed, code)
    return code


def _one_folder(found: Path | None, inbox: Path | None, outbox: Path | None) -> dict[str, Any]:
    """Folders named on the command line are the only ones then; an inbox brings its own processed and failed along."""
    from watcher import config

    first = config.load(found).folders[0].model_dump(mode="json", exclude_unset=True)
    if inbox is not None:
        first = {key: first[key] for key in ("after", "recursive", "ignore", "preset", "output") if key in first}
        first["inbox"] = str(inbox.absolute())
    if outbox is not None:
        first["outbox"] = str(outbox.absolute())
    return {"folders": [first]}


@verb
def depth(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Pictures.", show_default=False)],
    outdir: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="Put maps here.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Use this model.")] = None,
    config: ConfigOption = None,
) -> int:
    """Maps of the named files, beside them or in DIR. Touches no inbox and no journal."""
    from watcher import config as settings_room
    from watcher import logbook, oneoff

    settings = settings_room.load(settings_room.find(config), {"model.name": model})
    logbook.open_log("warning", "text", None, sys.stderr)

    def tell(file: Path, made: Path | None, error: str) -> None:
        if made is not None:
            typer.echo(f"{printable(str(file))} -> {printable(str(made))}")
        else:
            typer.echo(f"error: {printable(str(file))}: {error}", err=True)

    results = oneoff.make(settings, files, outdir, tell)
    for remark in filter(None, [results.notice, *results.remarks]):
        typer.echo(f"note: {remark}", err=True)
    return ExitCode.SOME_FAILED if results.failed else ExitCode.DONE


# -- progress -----------------------------------------------------------------------------------------------------


class _Lines:
    """One plain line a frame, for pipes and logs."""

    def __init__(self, settings: config.Settings) -> None:
        self._settings = settings
        self._last: status.Snapshot | None = None

    def snapshot(self, snapshot: status.Snapshot) -> None:
        self._last = snapshot

    def ended(self, frame: Frame, outcome: Outcome) -> None:
        if outcome.value in ("done", "failed"):
            typer.echo(f"{outcome.value}  {printable(frame.source.rel)}")

    def summary(self, done: int, failed: int, code: int) -> None:
        last = self._last
        typer.echo(
            f"{done} done, {failed} failed" if done or failed else "nothing to do: the inbox holds no new picture"
        )
        if failed and last is not None:
            for failure in last.last_errors[: min(failed, 10)]:
                typer.echo(f"error: {printable(failure.name)}: {failure.what}", err=True)
            folders = ", ".join(sorted({str(folder.failed) for folder in self._settings.folders}))
            typer.echo(f"Failed pictures are kept, each with its reason, in {folders}", err=True)
        if code == ExitCode.TRY_LATER and last is not None:
            typer.echo(f"error: not everything could be done: {by_hand(last.reason)}", err=True)
        if last is not None and last.notice:
            typer.echo(f"note: {last.notice}", err=True)


class _Bar(_Lines):
    """A bar with rate and time left, for people at a terminal."""

    def __init__(self, settings: config.Settings) -> None:
        super().__init__(settings)
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self.progress.add_task("depth maps", total=None, rate="")
        self._ended = 0

    def snapshot(self, snapshot: status.Snapshot) -> None:
        super().snapshot(snapshot)
        left = snapshot.counts.waiting + snapshot.counts.in_flight
        rate = f"{snapshot.rate:.1f}/s" if snapshot.rate else ""
        self.progress.update(self._task, total=self._ended + left or None, completed=self._ended, rate=rate)

    def ended(self, frame: Frame, outcome: Outcome) -> None:
        if outcome.value in ("done", "failed"):
            self._ended += 1
            self.progress.update(self._task, completed=self._ended)


@contextmanager
def _progress(settings: config.Settings) -> Iterator[_Lines]:
    if not sys.stderr.isatty():
        yield _Lines(settings)
        return
    bar = _Bar(settings)
    with bar.progress:
        yield bar
