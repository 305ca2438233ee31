from typing import Any

RECORD: tuple[tuple[str, str], ...]

def parse_headers(data: Any, offsets: Any, out: Any) -> int: ...
