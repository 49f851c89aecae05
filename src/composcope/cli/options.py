"""Options that several commands share, and what they ask for: the store, plugins, and where runs are done."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from composcope.errors import BadInput

if TYPE_CHECKING:
    from composcope.workers.executor import EngineOptions
    from composcope.workers.limits import Resources, Shard

DEFAULT_STORE = Path("runs")
RUN_ID_LENGTH = 16

StoreOption = Annotated[Path, typer.Option("--store", help="Folder that holds the results.")]
PluginOption = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="Python file with your own components; its code is run. May be repeated."),
]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Processes, one thread each; by default one per core.")]
KernelsOption = Annotated[
    Literal["auto", "torch"],
    typer.Option(help="auto: compiled convolutions where they are faster; torch: PyTorch's."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for other programs instead of text.")]
DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Do the runs on a Dask cluster: tcp://HOST:PORT of its scheduler, or local to start one here.",
    ),
]
GatherOption = Annotated[
    bool,
    typer.Option("--gather", help="With --dask: workers do not see the store; results come back through Dask."),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Only part I of N, for job arrays on a shared folder; the last to end draws.",
    ),
]
ResourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--resource", metavar="NAME=AMOUNT", help="What each run needs: threads=2, memory=4GB, gpus=1; may be repeated."
    ),
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        "--time-limit", min=0.1, metavar="SECONDS", help="Stop a run after this many seconds, and mark it failed."
    ),
]


@contextmanager
def engine_options(
    dask: str | None, gather: bool, resource: Sequence[str] | None, time_limit: float | None, workers: int | None
) -> Iterator["EngineOptions"]:
    """What `run_all` needs to know; a cluster is connected, and announced, while this is open."""
    resources = check_engine(dask, gather, resource)
    options: EngineOptions = {"resources": resources, "time_limit": time_limit, "gather": gather}
    if dask is None:
        yield options
        return
    from composcope.workers.dask_cluster import connect

    with connect(dask, workers, resources) as cluster:
        print(cluster, flush=True)
        yield {**options, "executor": cluster.executor}


def check_engine(dask: str | None, gather: bool, resource: Sequence[str] | None) -> "Resources":
    """BadInput for options that cannot work, before anything is done; the resources."""
    from composcope.workers.limits import Resources

    if gather and dask is None:
        raise BadInput("--gather: only with --dask; local processes see the store")
    if dask is not None:
        from composcope.workers.dask_cluster import check_address

        check_address(dask)
    return Resources.parse(resource or [])


def shard_of(text: str | None) -> "Shard | None":
    """The part of the runs to do; None for all."""
    from composcope.workers.limits import Shard

    return None if text is None else Shard.parse(text)


def complete_run_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Run ids that the shell offers on TAB, from the names of folders, since opening a store takes a second."""
    folder = Path(context.params.get("store") or DEFAULT_STORE)
    return sorted(path.name for path in folder.glob(f"{incomplete}*") if len(path.name) == RUN_ID_LENGTH)


def load_plugins(paths: Sequence[Path] | None) -> None:
    """Make installed and named components known."""
    from composcope.runs.plugins import load_installed_plugins, load_plugin

    load_installed_plugins()
    for path in paths or []:
        load_plugin(path)
