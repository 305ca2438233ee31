from typing import Any, Self, final

@final
class Target:
    def __new__(cls, array: Any, itemsize: int) -> Self: ...
