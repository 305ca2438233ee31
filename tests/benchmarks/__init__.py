"""Benchmarks against peers, interleaved in the same run; see `python -m tests.benchmarks -h`."""
