"""Build the compiled core; everything else is declared in pyproject.toml.

``RUMI_DEBUG=1`` compiles the kernels with bounds and initialisation checks; the
test suite passes in both builds. Signed overflow is what ``.ci/run`` looks for with
gcc's sanitizers: Cython's check also refuses unsigned numbers that are meant to wrap.

Wheels are built for each version of CPython, not for the stable ABI. Measured on
3.11 in interleaved processes, an abi3 build takes 1.06 times as long for a read
of 8 x 8 pixels, 1.2 times for parsing a header blob and 1.2 to 1.5 times for a
plan; the limit was 1.05.
"""

import os
import shlex
import shutil
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

FORMATS = Path("formats")

DEBUG = os.environ.get("RUMI_DEBUG", "") not in ("", "0")

DIRECTIVES = {
    "language_level": 3,
    "binding": True,
    "auto_pickle": False,
    "embedsignature": False,
    "freethreading_compatible": False,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "overflowcheck": False,
    "cdivision": True,
}

EXTENSIONS = [
    Extension(
        f"rumi._core.{name}",
        [f"rumi/_core/{name}.pyx"],
        # Python's own flags ask for debugging symbols, four fifths of each library.
        extra_compile_args=["-O1", "-g"] if DEBUG else ["-O3", "-g0"],
    )
    for name in (
        "bits",
        "callback",
        "columns",
        "decode",
        "failure",
        "header",
        "plan",
        "scatter",
        "store",
    )
]


class BuildPy(build_py):
    """Put the format specifications into the package, for `rumi formats`.

    They stand outside of it in the sources, because they are not Python's alone;
    an editable installation finds them there. Nothing is generated: that needs
    node, and what rumi itself needs of it is committed.
    """

    def run(self):
        """Build as ever, then copy."""
        super().run()
        if self.editable_mode:
            return
        for pattern in (
            "*.ksy",
            "generate.mjs",
            "package.json",
            ".npmrc",
            "generator/**/*",
            "vectors/*",
        ):
            for path in sorted(filter(Path.is_file, FORMATS.glob(pattern))):
                target = Path(self.build_lib, "rumi", "_formats", path.relative_to(FORMATS))
                self.mkpath(str(target.parent))
                self.copy_file(str(path), str(target))


class BuildCore(build_ext):
    """Say what is missing before the compiler says it in its own words."""

    def build_extensions(self) -> None:
        """Compile the core where there is something to compile it with."""
        compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
        if os.name == "posix" and shutil.which(compiler) is None:
            raise SystemExit(
                f"rumi: its core is compiled, and there is no C compiler ({compiler}) here. "
                "Install one (Debian: apt-get install gcc) and try again."
            )
        if not any((Path(folder) / "Python.h").exists() for folder in self.include_dirs):
            raise SystemExit(
                "rumi: its core is compiled, and the C headers of this Python (Python.h) are not "
                "here. Install them (Debian: apt-get install python3-dev) and try again."
            )
        super().build_extensions()


setup(
    cmdclass={"build_ext": BuildCore, "build_py": BuildPy},
    ext_modules=cythonize(
        EXTENSIONS,
        compiler_directives=DIRECTIVES,
        build_dir="build/cython",
        force=DEBUG,
    ),
    # Installing from the sources waits for the compiler more than for anything else.
    options={"build_ext": {"parallel": os.cpu_count()}},
)
