"""How a decode ends, kept free of Python objects until it must be one."""

from libc.stdint cimport int64_t

from rumi._core.plan cimport Plan


cdef enum:
    MESSAGE_SIZE = 512

cdef enum Status:
    OK = 0
    NOT_A_FRAME
    WRONG_SIZE
    WIDE_SAMPLE
    SHORT_FILE
    IO_FAILED
    NO_MEMORY
    BACKEND_FAILED

cdef struct Failure:
    Status status
    int64_t position      # of the frame in the plan
    int64_t expected
    int64_t found
    int code              # errno, or the backend's
    char message[MESSAGE_SIZE]

cdef object size_error(Plan plan, int64_t position, expected, found, outputs, where)
cdef object translate(Plan plan, int64_t position, str reason, where)
cdef object raise_failure(Plan plan, Failure* failure, where)
cdef object raise_errno(int number, path)
