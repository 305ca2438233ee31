"""What belongs to one process: clients, the loop, and obstore itself.

A fork takes none of it along. obstore runs on threads of its own, which a forked
child does not have: whatever the child asks of it hangs for ever. So a child of
a process that had loaded obstore loads it once more, from a copy, whose threads
have yet to start.

Nor does the end of the interpreter go well with those threads: one that is
still handing over a result then aborts the process. So the end waits for them.
"""

from __future__ import annotations

import atexit
import importlib.machinery
import importlib.util
import os
import sys
import threading
import time
import weakref
from collections import OrderedDict
from typing import Any, NamedTuple

from rumi.errors import SourceError, UnsupportedError

__all__ = ["Obstore", "current", "obstore", "remade"]

_NAME = "_obstore"

# Seconds that the end of the process waits for obstore's threads: at most, and
# where requests were abandoned, whose threads cannot be seen before they come.
_LONGEST_WAIT = 1.0
_WAIT_FOR_ABANDONED = 0.05


class Obstore(NamedTuple):
    """The part of obstore that is used here.

    Attributes
    ----------
    get_async, put_async : callable
    stores : module
        The classes of stores.
    """

    get_async: Any
    put_async: Any
    stores: Any


class _Process:
    def __init__(self, *, forked: bool, unusable: bool) -> None:
        self.lock = threading.Lock()
        self.forked = forked
        # Whether obstore, as the parent loaded it, cannot be used here.
        self.unusable = unusable
        self.obstore: Obstore | None = None
        self.clients: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.shared: OrderedDict[Any, Any] = OrderedDict()
        self.loop: Any = None
        # When a request was last cancelled.
        self.abandoned = -_LONGEST_WAIT


def _is_forked() -> bool:
    """Whether this process was forked before rumi was imported and could see it."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is None:
        return False
    return type(multiprocessing.current_process()).__name__ == "ForkProcess"


_current = _Process(forked=_is_forked(), unusable=_is_forked() and "obstore" in sys.modules)

# Clients and loops of the parent: to destroy them would need the threads they had.
_left_behind: list[_Process] = []


def _after_fork() -> None:
    global _current
    _left_behind.append(_current)
    _current = _Process(forked=True, unusable=_current.unusable or "obstore" in sys.modules)


os.register_at_fork(after_in_child=_after_fork)


def _at_exit() -> None:
    """End the loop and what it has in flight, then let obstore's threads come to an end."""
    process = _current
    if process.loop is not None:
        process.loop.stop()
    if process.obstore is None:
        return
    if time.monotonic() - process.abandoned < _LONGEST_WAIT:
        time.sleep(_WAIT_FOR_ABANDONED)
    ours = {thread.ident for thread in threading.enumerate()}
    until = time.monotonic() + _LONGEST_WAIT
    # A thread that has handed over its result may still be inside Python's own code.
    while sys._current_frames().keys() - ours and time.monotonic() < until:
        time.sleep(0.001)


atexit.register(_at_exit)


def current() -> _Process:
    """Return what belongs to this process."""
    return _current


def obstore() -> Obstore:
    """Load obstore, at first need.

    Raises
    ------
    UnsupportedError
        If it is not installed.
    SourceError
        If this process was forked after obstore was loaded, and it cannot be
        loaded again.
    """
    process = _current
    with process.lock:
        if process.obstore is None:
            process.obstore = _load_copy() if process.unusable else _load()
        return process.obstore


def _load() -> Obstore:
    try:
        import obstore
        import obstore.store as stores
    except ImportError as error:
        raise UnsupportedError(
            f"remote files need obstore ({error}): pip install 'rumi[remote]'"
        ) from error
    return Obstore(obstore.get_async, obstore.put_async, stores)


def _load_copy() -> Obstore:
    """Load the extension module of obstore again, under a name of its own."""
    import shutil

    path = sys.modules["obstore"].__path__[0]
    names = [name for name in os.listdir(path) if name.startswith(f"{_NAME}.")]
    before = dict(sys.modules)
    try:
        with open(os.path.join(path, names[0]), "rb") as library, _unnamed_file() as copy:
            shutil.copyfileobj(library, copy)
            copy.flush()
            # The loader tells libraries apart by file, so a second name would not do.
            place = getattr(copy, "visible_name", None) or f"/proc/self/fd/{copy.fileno()}"
            loader = importlib.machinery.ExtensionFileLoader(_NAME, place)
            spec = importlib.util.spec_from_file_location(_NAME, place, loader=loader)
            module: Any = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
            loader.exec_module(module)
    except (OSError, ImportError, IndexError) as error:
        raise SourceError(
            "obstore was loaded before this process was forked, does not survive that, and cannot "
            f"be loaded again ({error}); start workers with 'spawn' or 'forkserver'"
        ) from error
    finally:
        # Its submodules put themselves in the place of the first ones.
        sys.modules.update(before)
    return Obstore(module.get_async, module.put_async, module._store)


def _unnamed_file() -> Any:
    """Return a new file that can be loaded and leaves no name behind."""
    if hasattr(os, "memfd_create"):
        try:
            return os.fdopen(os.memfd_create(_NAME), "wb")
        except OSError:
            # Forbidden by the system; it may allow an ordinary file.
            pass
    import tempfile

    file: Any = tempfile.NamedTemporaryFile(suffix=f"{_NAME}.so")  # noqa: SIM115
    file.visible_name = file.name
    return file


def remade(store: Any) -> Any:
    """Return a store of obstore as this process can use it.

    Raises
    ------
    SourceError
        If it was forked, and the store's objects are the parent's memory.
    """
    if not _current.unusable:
        return store
    try:
        arguments, keywords = store.__getnewargs_ex__()
    except (AttributeError, TypeError) as error:
        raise SourceError(
            f"a {type(store).__name__} lives in the process that made it and does not survive a "
            "fork; give the workers the bytes"
        ) from error
    return getattr(obstore().stores, type(store).__name__)(*arguments, **keywords)
