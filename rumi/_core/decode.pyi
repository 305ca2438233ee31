from collections.abc import Callable
from typing import Any, Self, final

from rumi._core.plan import Plan
from rumi._core.scatter import Target
from rumi._core.store import Store

FRAME_MAGIC: int

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
        gap: int = ...,
        largest: int = ...,
    ) -> None: ...
    @property
    def done(self) -> int: ...
    def decode_items(
        self, sources: list[Any], plans: list[Plan], target: Target, item: int
    ) -> None: ...
    def decode_shared(
        self,
        plan: Plan,
        store: Store,
        target: Target,
        counter: Counter,
        chunk: int = 4,
        item: int = 0,
        gap: int = ...,
        largest: int = ...,
    ) -> None: ...
    def samples(self, frame: bytes) -> bytes: ...
    def matches(self, frame: bytes, samples: Any) -> bool: ...

def environment(name: bytes) -> bytes | None: ...
def set_geozl(decompress: int, frame_size: int) -> None: ...
