from collections.abc import Callable
from typing import Any, Self, final

from rumi._core.plan import Plan

@final
class Target:
    def __new__(cls, array: Any, itemsize: int) -> Self: ...

@final
class Store:
    @property
    def name(self) -> Any: ...
    @property
    def size(self) -> int: ...
    @property
    def identity(self) -> tuple[int, int, int]: ...
    @staticmethod
    def open_path(path: str | bytes, name: Any = None) -> Store: ...
    @staticmethod
    def memory(data: Any, base: int = 0, name: Any = "<bytes>") -> Store: ...
    def read(self, start: int, size: int) -> bytes: ...

@final
class Counter:
    def stop(self) -> None: ...

@final
class Decoder:
    def __new__(cls, backend: str = "openzl") -> Self: ...
    @property
    def backend(self) -> str: ...
    @property
    def taught(self) -> bool: ...
    def teach(self, register: Callable[[Any], object]) -> None: ...
    def decode(
        self,
        plan: Plan,
        store: Store,
        target: Target,
        item: int = 0,
        first: int = 0,
        stop: int = -1,
        gap: int = 4096,
        largest: int = ...,
    ) -> None: ...
    def decode_shared(
        self,
        plan: Plan,
        store: Store,
        target: Target,
        counter: Counter,
        chunk: int = 4,
        item: int = 0,
        gap: int = 4096,
        largest: int = ...,
    ) -> None: ...
    def matches(self, frame: bytes, samples: Any) -> bool: ...

def environment(name: bytes) -> bytes | None: ...
def openzl_reason(error: object) -> str: ...
def set_geozl(decompress: int, frame_size: int) -> None: ...
