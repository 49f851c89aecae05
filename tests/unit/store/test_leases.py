"""Leases: one live holder at a time, whatever the clocks say, and nothing lost when a holder dies."""

import json
import multiprocessing
import os
import signal
import threading
import time

import pytest

import composcope as cs
from composcope.store import leases
from composcope.store.leases import Leases

fork = multiprocessing.get_context("fork")
RUN = "0123456789abcdef"


def lease_file(folder):
    return folder / ".leases" / RUN


def taken(folder):
    with Leases(folder).take(RUN) as mine:
        return mine


def of_another_host(folder, heartbeat):
    """A lease whose holder is on another machine, and when its heart last beat, in seconds from now."""
    folder.mkdir(exist_ok=True)
    lease_file(folder).parent.mkdir(exist_ok=True)
    lease_file(folder).write_text(json.dumps({"machine": "elsewhere", "pid": 1, "started": "1", "token": "t"}))
    when = time.time() + heartbeat
    os.utime(lease_file(folder), (when, when))


def hold(folder, ready):
    with cs.Store(folder).lease(RUN) as mine:
        ready.send(mine)
        time.sleep(600)


@pytest.fixture
def holder(folder):
    """A process that holds the lease."""
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=hold, args=(folder, sender))
    process.start()
    assert receiver.recv()
    yield process
    process.kill()
    process.join()


def test_one_holder_at_a_time(store):
    with store.lease(RUN) as mine:
        assert mine
        with store.lease(RUN) as second:
            assert not second
        with store.lease("fedcba9876543210") as other:
            assert other
    with store.lease(RUN) as again:
        assert again


def test_nothing_is_left_behind(store, folder):
    with store.lease(RUN):
        assert lease_file(folder).exists()
    assert not list((folder / ".leases").iterdir())


def test_a_live_process_keeps_its_lease(holder, store):
    with store.lease(RUN) as mine:
        assert not mine


def test_a_stopped_process_keeps_its_lease(holder, store, folder):
    """It will go on; its heart does not beat meanwhile."""
    os.kill(holder.pid, signal.SIGSTOP)
    os.utime(lease_file(folder), (0, 0))
    with store.lease(RUN) as mine:
        assert not mine


def test_the_lease_of_a_killed_process_is_free_at_once(holder, store, folder):
    os.kill(holder.pid, signal.SIGKILL)
    start = time.monotonic()
    while not taken(folder):  # until the kernel has ended it
        assert time.monotonic() - start < 5
    assert not list((folder / ".leases").iterdir())


def test_a_zombie_holds_nothing(holder, folder):
    os.kill(holder.pid, signal.SIGKILL)
    time.sleep(0.2)  # not joined: it is still in the process table
    assert taken(folder)


def test_another_process_with_the_same_id_holds_nothing(folder):
    """Process ids are used again."""
    of_another_host(folder, 0)
    mine = {"machine": leases._machine(), "pid": os.getpid(), "started": "7", "token": "t"}
    lease_file(folder).write_text(json.dumps(mine))
    assert taken(folder)


@pytest.mark.parametrize("heartbeat", [0, -7200, 7200])
def test_a_silent_lease_of_another_host_is_free_whatever_the_clocks_say(heartbeat, folder, monkeypatch):
    monkeypatch.setattr(leases, "SILENT_SECONDS", 0.2)
    of_another_host(folder, heartbeat)
    assert taken(folder)


@pytest.mark.parametrize("ahead", [0, -7200, 7200])
def test_no_clock_is_believed_against_a_beating_heart(ahead, folder, monkeypatch):
    """The other host's clock, or ours, is two hours wrong, and the file system keeps what each host says."""
    monkeypatch.setattr(leases, "SILENT_SECONDS", 5)
    of_another_host(folder, ahead)
    stop = threading.Event()

    def beat():
        while not stop.wait(0.1):
            when = time.time() + ahead
            os.utime(lease_file(folder), (when, when))

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        assert not taken(folder)
    finally:
        stop.set()
        thread.join()


def test_the_heart_beats_while_the_lease_is_held(store, folder, monkeypatch):
    monkeypatch.setattr(leases, "HEARTBEAT_SECONDS", 0.05)
    with store.lease(RUN):
        os.utime(lease_file(folder), (0, 0))
        deadline = time.monotonic() + 5
        while lease_file(folder).stat().st_mtime < 1:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_take_over_that_comes_late_is_put_back(folder, monkeypatch):
    """The lease was found dead, but before it was removed somebody else took it over."""
    monkeypatch.setattr(leases, "SILENT_SECONDS", 0.1)
    of_another_host(folder, -7200)
    late, rename, rivals = Leases(folder), os.rename, []

    def interrupted(source, target):
        if not rivals:
            rivals.append(Leases(folder).take(RUN))
            assert rivals[0].__enter__()
        rename(source, target)

    monkeypatch.setattr(leases.os, "rename", interrupted)
    with late.take(RUN) as mine:
        assert not mine
    assert lease_file(folder).exists()
    rivals[0].__exit__(None, None, None)
    assert not list((folder / ".leases").iterdir())


def test_a_lease_that_was_taken_over_is_not_released(folder):
    folder.mkdir()
    with Leases(folder).take(RUN) as mine:
        assert mine
        of_another_host(folder, 0)
    assert lease_file(folder).exists()


def compete(folder, start, held):
    """Take the lease many times; the file shows whether two ever held it at once."""
    start.wait()
    for _ in range(60):
        with Leases(folder).take(RUN) as mine:
            if mine:
                try:
                    os.close(os.open(folder / "held", os.O_CREAT | os.O_EXCL))
                    os.unlink(folder / "held")
                    held.put(os.getpid())
                except FileExistsError:
                    held.put("two at once")


def test_many_processes_never_hold_it_together(folder):
    folder.mkdir()
    start, held = fork.Barrier(4), fork.SimpleQueue()
    group = [fork.Process(target=compete, args=(folder, start, held)) for _ in range(4)]
    for process in group:
        process.start()
    for process in group:
        process.join()
    results = []
    while not held.empty():
        results.append(held.get())
    assert results
    assert "two at once" not in results


def test_a_lease_needs_a_plain_name(store):
    with pytest.raises(cs.BadInput, match="letters"), store.lease("../x"):
        pass


def test_leases_are_never_written_through_a_link(store, folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    folder.mkdir()
    (folder / ".leases").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(cs.BadInput, match="cannot be written"), store.lease(RUN):
        pass
    assert not list((tmp_path / "elsewhere").iterdir())
