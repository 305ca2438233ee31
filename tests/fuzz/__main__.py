"""Fuzz a target: by coverage with atheris, or with a fixed number of mutations without it.

    python tests/fuzz TARGET [--corpus FOLDER] [options of libFuzzer]
    python tests/fuzz TARGET --mutations NUMBER [--seed NUMBER]

An input that breaks a promise, crashes, or takes more than ten seconds or 500 MB is
left in the current folder, as ``crash-...``, and named.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The modules of the tests import each other by name, as in pytest.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

_NAMES = ("blob", "index", "frames", "windows")
_OPTIONS = ("-max_len=8192", "-timeout=10", "-rss_limit_mb=500", "-print_final_stats=1")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python tests/fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", choices=_NAMES)
    parser.add_argument("--mutations", type=int, help="how many, without atheris")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations")
    parser.add_argument("--corpus", help="folder that atheris adds to; by default none is kept")
    options, rest = parser.parse_known_args()
    if options.mutations is not None:
        _mutate(options.target, options.mutations, options.seed)
    elif options.corpus is not None:
        _fuzz(options.target, Path(options.corpus), rest)
    else:
        # libFuzzer ends the process that it runs in, so another one takes the folder away.
        with tempfile.TemporaryDirectory() as corpus:
            arguments = [options.target, "--corpus", corpus, *rest]
            command = [sys.executable, str(Path(__file__).parent), *arguments]
            sys.exit(subprocess.run(command, check=False).returncode)


def _mutate(name: str, number: int, seed: int) -> None:
    from fuzz.mutations import mutations
    from fuzz.seeds import seeds
    from fuzz.targets import TARGETS, peak_memory, warm_up

    target = TARGETS[name]
    warm_up()
    for data in seeds(name):
        target(data)
    longest = 0.0
    for _, data in zip(range(number), mutations(name, seed), strict=False):
        start = time.process_time()
        try:
            target(data)
        except BaseException:
            path = Path(f"crash-{hashlib.sha1(data).hexdigest()}")
            path.write_bytes(data)
            print(f"{name}: {path}: {len(data)} bytes", file=sys.stderr)
            raise
        longest = max(longest, time.process_time() - start)
    print(f"{name}: {number} mutations, at most {longest:.3f} s, {peak_memory() >> 20} MiB")


def _fuzz(name: str, corpus: Path, options: list[str]) -> None:
    import atheris

    # Before anything imports rumi. What is written in Python gives coverage; the
    # kernels give theirs where clang compiled them with -fsanitize=fuzzer-no-link.
    with atheris.instrument_imports(include=["rumi"]):
        from fuzz.seeds import seeds
        from fuzz.targets import TARGETS, warm_up

    warm_up()
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(data)
    atheris.Setup([sys.argv[0], *_OPTIONS, *options, str(corpus)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
