"""Files in object stores, behind HTTP, and in fsspec file systems.

A URL works wherever a path does. An `ObjectStore` carries what a URL cannot say:
credentials, endpoint, timeouts, caps. One object of it, with what is known
about its state, is a `RemoteSource`. Nothing here imports a client before it is
needed, and no setting is global.
"""

from rumi.remote.store import ObjectStore, RemoteSource, from_url

__all__ = ["ObjectStore", "RemoteSource", "from_url"]
