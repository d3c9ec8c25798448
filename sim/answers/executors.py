"""Where simulations run: in this process, in processes of this machine, or on a Dask cluster. All are Executors."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import active_children, get_context, parent_process
from typing import Any, NamedTuple

from .. import __version__
from ..inputs.errors import InputError, Problem
from ..inputs.wording import shown

ANSWER_WITHIN_S = 10

Mapped = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]  # an executor's `map`


class Workers(NamedTuple):
    """An executor and how many simulations it runs at once."""

    executor: Executor
    width: int


class InThisProcess(Executor):
    """Runs each call when it is submitted, or in turn as the results of a map are asked for."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done already."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], **options: Any) -> Iterator[Any]:
        """The results in order; timeouts and chunks mean nothing here."""
        return map(fn, *iterables)


@contextmanager
def workers(jobs: int, dask: str | None = None) -> Iterator[Workers]:
    """jobs: processes of this machine, 1: this one. dask: the address of a scheduler, which is then used instead.

    Left by an exception, what is still running here is ended at once. Raises InputError if no cluster answers.
    """
    if dask is not None:
        with _cluster(dask) as found:
            yield found
    elif jobs == 1:
        yield Workers(InThisProcess(), 1)
    else:
        with _processes(jobs) as pool:
            yield Workers(pool, jobs)


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    before = active_children()
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_start_worker)
    try:
        yield pool
    except BaseException:
        for child in active_children():
            if child not in before:
                child.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()


def _start_worker() -> None:
    """A worker leaves Ctrl-C to its parent, and ends when the parent is gone, however it went."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _cluster(address: str) -> Iterator[Workers]:
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        rule, remedy = "--dask needs the package distributed", "install the extra: specsim-llm[cluster]"
        raise InputError([_problem("no Dask is installed", rule, remedy)]) from None
    try:
        get_address_host_port(address)  # a client of an address that cannot be one complains in its own way
        client = Client(address, timeout=ANSWER_WITHIN_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        what = f"{shown(address)} does not answer ({reason})"
        raise InputError([_problem(what, "a Dask scheduler runs there", "correct the address or start one")]) from error
    try:
        yield Workers(client.get_executor(pure=False), _cores(client, address))
    finally:
        with suppress(Exception):  # a scheduler that is gone cannot be told good-bye
            client.close(timeout=ANSWER_WITHIN_S)


def _cores(client: Any, address: str) -> int:
    """Cores of all workers, each of which must know this version."""
    try:
        client.wait_for_workers(1, timeout=ANSWER_WITHIN_S)
    except TimeoutError as error:
        what = f"the scheduler at {shown(address)} has no workers"
        raise InputError([_problem(what, "workers do the work", "start some with `dask worker`")]) from error
    try:
        versions = set(client.run(installed_version).values())
    except Exception as error:  # whatever a worker raises when it cannot import this module
        versions = {f"none ({type(error).__name__})"}
    if versions != {__version__}:
        what = f"its workers have specsim {', '.join(sorted(versions))}"
        raise InputError([_problem(what, f"they need the same version, {__version__}", "install it on the workers")])
    return sum(client.nthreads().values())


def installed_version() -> str:
    """What a worker answers when it is asked for its version."""
    return __version__


def _problem(what: str, rule: str, remedy: str) -> Problem:
    return Problem("specsim", 1, 1, "--dask", what.replace("\n", " "), rule, remedy)
