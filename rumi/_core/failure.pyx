"""Errors of decoding: the one place that turns a status into an exception."""

from libc.stdint cimport int64_t

from rumi._core.plan cimport Plan

import os

from rumi.errors import CodecError, FormatError, TruncatedError, UnsupportedError


def openzl_reason(error):
    """Return OpenZL's own one-line reason from the text of its RuntimeError."""
    text = str(error)
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("Custom decoder transform"):
            return line.rstrip("!")
    for line in text.splitlines():
        _, _, reason = line.partition("OpenZL error string: ")
        if reason:
            return reason.strip()
    return text.strip().splitlines()[0] if text.strip() else "no reason given"


cdef str _place(Plan plan, int64_t position, where):
    cdef str place = plan.describe(&plan.frames[position])
    return f"{place} of {where}" if where else place


cdef object size_error(Plan plan, int64_t position, expected, found, outputs, where):
    if outputs != 1:
        return CodecError(
            f"{_place(plan, position, where)}: expected a frame of one output, found {outputs}"
        )
    return CodecError(
        f"{_place(plan, position, where)}: expected a frame of {expected} bytes of samples, "
        f"found one of {found}"
    )


cdef object translate(Plan plan, int64_t position, str reason, where):
    if "Custom decoder transform" in reason or "ustom decoder" in reason:
        return UnsupportedError(
            f"{_place(plan, position, where)}: needs a geozl codec ({reason}); "
            "pip install 'rumi[geozl]'"
        )
    return CodecError(f"{_place(plan, position, where)}: OpenZL cannot decode it: {reason}")


cdef object raise_failure(Plan plan, Failure* failure, where):
    cdef str place = _place(plan, failure.position, where)
    if failure.status == NOT_A_FRAME:
        raise CodecError(f"{place}: the bytes do not start with the magic of an OpenZL frame")
    if failure.status == WRONG_SIZE:
        raise size_error(plan, failure.position, failure.expected, failure.found, 1, where)
    if failure.status == WIDE_SAMPLE:
        raise FormatError(
            f"{place}: a sample has bits above its {plan.header.bits_per_sample} bits"
        )
    if failure.status == SHORT_FILE:
        raise TruncatedError(
            f"{place}: expected {failure.expected} bytes at offset "
            f"{plan.frames[failure.position].offset}, found {failure.found} before the end"
        )
    if failure.status == NO_MEMORY:
        raise MemoryError(f"{place}: {failure.expected} bytes")
    if failure.status == IO_FAILED:
        raise OSError(failure.code, f"{os.strerror(failure.code)}: {place}")
    raise translate(
        plan, failure.position,
        openzl_reason(RuntimeError(failure.message.decode("utf-8", "replace"))), where,
    )


cdef object raise_errno(int number, path):
    if path is None:
        raise OSError(number, os.strerror(number))
    raise OSError(number, os.strerror(number), os.fsdecode(path))
