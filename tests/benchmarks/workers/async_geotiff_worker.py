"""COGs through async-geotiff, with obstore."""

import asyncio
from datetime import timedelta
from urllib.parse import urlsplit

import numpy as np
from async_geotiff import GeoTIFF, Window
from loop import serve, timed
from obstore.store import HTTPStore

stores = {}
loop = asyncio.new_event_loop()


def remote(url, windows):
    """Open and read, each time anew, over connections that stay."""
    parts = urlsplit(url)
    store = stores.setdefault(
        parts.netloc,
        HTTPStore(
            f"http://{parts.netloc}",
            client_options={"allow_http": True, "timeout": timedelta(seconds=60)},
        ),
    )

    async def read(window):
        row, col, height, width = window
        image = await GeoTIFF.open(parts.path[1:], store=store)
        window = Window(col_off=col, row_off=row, width=width, height=height)
        return np.asarray((await image.read(window=window)).data)

    return timed(lambda window: loop.run_until_complete(read(window)), windows)


serve({"remote": remote})
