"""Chips of a catalog as PyTorch tensors: a map-style dataset and a stream.

Needs torch: ``pip install 'rumi[torch]'``. Both classes work in a DataLoader
whose workers are forked, spawned or come from a fork server, persistent or not.
"""

from rumi.errors import UnsupportedError

try:
    import torch  # noqa: F401
except ImportError as error:
    raise UnsupportedError(
        f"rumi.torch needs PyTorch ({error}): pip install 'rumi[torch]'"
    ) from error

from rumi.torch.dataset import ChipDataset
from rumi.torch.reader import ChipOptions
from rumi.torch.stream import ChipStream
from rumi.torch.tensors import as_tensor

__all__ = ["ChipDataset", "ChipOptions", "ChipStream", "as_tensor"]
