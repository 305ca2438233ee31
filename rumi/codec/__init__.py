"""Codecs: presets, recipes of OpenZL nodes, geozl's recipes, builders of one's own.

``codec=`` of `rumi.write` takes

``"auto"``
    The default, the same as ``"balanced"``: a recipe chosen from samples of the
    image by its compressed size and, where sizes are close, by its decode speed.
``"fast"``
    The same for files that lie close to their readers: speed counts more.
``"small"``
    The smallest file, however long it takes to write; reading is slower too.
    It stays with OpenZL's own nodes, so that reading needs nothing else.
``"geozl:small"``
    The same with geozl's predictors; reading needs geozl.
a recipe, ``"delta>zigzag>blocks:4x8>words"``
    See `rumi.codec.recipes` for the steps.
a recipe of geozl, ``"geozl:planar>zigzag>transpose>entropy"``
    See `rumi.codec.geozl`. With ``error=`` it is near-lossless.
a callable
    ``build(compressor: openzl.ext.Compressor) -> openzl.ext.GraphID``.
a `Codec`
    What `resolve` found for another image of the same kind.

Every frame is self-contained, of one Numeric output, in OpenZL's frame format 24
with both checksums; a reader needs to know nothing of its recipe. What a preset
chooses depends on the samples alone: the same image gives the same file on every
run and machine. `profile` measures recipes on an image.
"""

from rumi.codec.codec import PRESETS, Builder, Codec, Encoder, resolve
from rumi.codec.encoder import FRAME_VERSION, FrameEncoder
from rumi.codec.profiling import Profile, ProfileRow, profile
from rumi.codec.recipes import LEAVES, STEPS, Recipe, Step, parse
from rumi.codec.trial import Samples

__all__ = [
    "FRAME_VERSION",
    "LEAVES",
    "PRESETS",
    "STEPS",
    "Builder",
    "Codec",
    "Encoder",
    "FrameEncoder",
    "Profile",
    "ProfileRow",
    "Recipe",
    "Samples",
    "Step",
    "parse",
    "profile",
    "resolve",
]
