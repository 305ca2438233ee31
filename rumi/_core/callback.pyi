from collections.abc import Callable
from typing import Any

def keeping(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]: ...
