"""Options on where runs are done: local processes, a cluster, or one part of a job array."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from composcope.errors import BadInput

if TYPE_CHECKING:
    from composcope.workers.executor import EngineOptions
    from composcope.workers.resources import Resources
    from composcope.workers.sharding import Shard

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
    float | None, typer.Option("--time-limit", min=0.1, metavar="SECONDS", help="A run that takes longer has failed.")
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
    from composcope.workers.resources import Resources

    if gather and dask is None:
        raise BadInput("--gather: only with --dask; local processes see the store")
    if dask is not None:
        from composcope.workers.dask_cluster import check_address

        check_address(dask)
    return Resources.parse(resource or [])


def shard_of(text: str | None) -> "Shard":
    """The part of the runs to do; all by default."""
    from composcope.workers.sharding import Shard

    return Shard() if text is None else Shard.parse(text)
