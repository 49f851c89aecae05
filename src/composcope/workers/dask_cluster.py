"""Dask distributed as the engine of runs: a scheduler that is running, or one started here."""

import logging
import multiprocessing
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from composcope.display import counted
from composcope.errors import BadInput
from composcope.workers.limits import Resources, local_workers
from composcope.workers.local_pool import signals_held

LOCAL = "local"
CONNECT_SECONDS = 10
CLOSE_SECONDS = 3
DASHBOARD = "127.0.0.1:8787"


@dataclass(frozen=True)
class Cluster:
    """A cluster that is connected: the executor for `run_all`, and what a user wants to know of it."""

    executor: Executor
    address: str
    dashboard: str
    workers: int
    max_threads: int

    def __str__(self) -> str:
        workers, dashboard = counted(self.workers, "worker"), self.dashboard or "not available"
        text = f"Dask scheduler {self.address}, {workers}, dashboard {dashboard}"
        if not self.workers:
            return f"{text}; waiting for workers: dask worker {self.address} --nthreads 1"
        if self.max_threads > 1:
            return f"{text}; a worker does one run at a time, so start workers with --nthreads 1"
        return text


@contextmanager
def connect(address: str, workers: int | None = None, resources: Resources | None = None) -> Iterator[Cluster]:
    """The cluster at an address such as tcp://HOST:8786, or a new one for "local", which is ended afterwards."""
    check_address(address)
    try:
        with signals_held():
            import distributed
    except ImportError:
        raise BadInput("--dask needs dask.distributed: pip install 'composcope[cluster]'") from None
    wanted = resources or Resources()
    # It reports every connection that closes; what matters to a user reaches them as an error of ours.
    for name in ("distributed", "distributed.client", "bokeh", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as closing:
        if address == LOCAL:
            target = closing.enter_context(_local_cluster(local_workers(workers, wanted, 10**9), wanted))
        else:
            target = address
        try:
            with signals_held():  # its threads leave an interrupt to ours
                client = distributed.Client(target, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:  # a name that does not resolve is a ValueError
            reason = str(error).splitlines()[0] if str(error) else "no answer"
            raise BadInput(
                f"--dask {address}: no Dask scheduler answers there ({reason}); start one with `dask scheduler`"
            ) from None
        closing.callback(_close, client)
        yield _describe(client, wanted)


def check_address(address: str) -> None:
    """BadInput unless it can be the address of a scheduler, or is "local"."""
    if address != LOCAL and not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://[^\s/]+:\d+", address):
        raise BadInput(f"--dask {address!r}: write tcp://HOST:PORT of a running scheduler, or local")


def _describe(client: Any, wanted: Resources) -> Cluster:
    info = client.scheduler_info(n_workers=-1)
    workers = list(info["workers"].values())
    for name, amount in wanted.named.items():
        if workers and not any(worker["resources"].get(name, 0) >= amount for worker in workers):
            raise BadInput(
                f"no worker of {client.scheduler.address} offers {name}={amount:g};"
                f" start workers with: dask worker ... --resources {name}={amount:g}"
            )
    executor = client.get_executor(pure=False, resources=dict(wanted.named) or None)
    threads = max((worker["nthreads"] for worker in workers), default=1)
    dashboard = client.dashboard_link if info["services"].get("dashboard") else ""  # none without bokeh
    return Cluster(executor, client.scheduler.address, dashboard, len(workers), threads)


@contextmanager
def _local_cluster(workers: int, wanted: Resources) -> Iterator[Any]:
    """A scheduler and workers of one thread each on this machine, reachable from this machine only."""
    with signals_held():
        import dask.config
        from distributed import LocalCluster

    before = {process.pid for process in multiprocessing.active_children()}
    # A run whose worker died comes back at once, and is tried alone; Dask would try it with others three times.
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        try:
            with signals_held():
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=wanted.threads,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address=DASHBOARD,
                    resources=dict(wanted.named) or None,
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                )
            try:
                yield cluster
            finally:
                with signals_held(), suppress(Exception):
                    cluster.close(timeout=CLOSE_SECONDS)
        finally:
            orphans = [process for process in multiprocessing.active_children() if process.pid not in before]
            for process in orphans:
                process.kill()
            for process in orphans:
                process.join(CLOSE_SECONDS)


def _close(client: Any) -> None:
    with signals_held(), suppress(Exception):  # the scheduler may be gone
        client.close(timeout=CLOSE_SECONDS)
