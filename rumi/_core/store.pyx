"""Files and memory as byte ranges, without a shared cursor."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AsString
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.errno cimport EINTR, EISDIR, errno
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, strlen
from posix.fcntl cimport O_CLOEXEC, O_RDONLY, open as c_open
from posix.stat cimport S_ISDIR, fstat, struct_stat
from posix.unistd cimport close as c_close, pread

from rumi._core.failure cimport IO_FAILED, OK, SHORT_FILE, Failure, raise_errno, raise_failure
from rumi._core.header cimport BlobHeader
from rumi._core.plan cimport Frame, Plan

import os

from rumi.errors import StaleHeaderError

cdef extern from "Python.h":
    bytes PyUnicode_EncodeFSDefault(str text)

cdef extern from "sys/uio.h" nogil:
    cdef struct iovec:
        void* iov_base
        size_t iov_len
    ssize_t preadv(int fd, const iovec* iov, int count, int64_t offset)


@cython.final
@cython.no_gc
cdef class Store:
    """Bytes of one file: a descriptor read by position, or memory.

    Make one with `open_path` or `memory`. `name` is what errors call the file;
    `size` is in bytes; `identity` tells one state of a local file from another.

    Not tracked by the garbage collector, which would let go of a buffer before
    it is released; a store refers to nothing that could refer to it.
    """

    def __cinit__(self):
        self._fd = -1
        self._held = False
        self._data = NULL
        self._base = 0
        self.size = 0
        self._modified_ns = 0
        self._inode = 0

    def __dealloc__(self):
        if self._fd >= 0:
            c_close(self._fd)
        if self._held:
            PyBuffer_Release(&self._view)

    @staticmethod
    def open_path(path, name=None):
        """Open a file for positional reads; it is closed with the last reference.

        Parameters
        ----------
        path : str or bytes
            Of the file system, not a URL.
        name : str, optional
            What errors call the file; the path by default.

        Raises
        ------
        OSError
            As ``open(2)`` fails, with its number and the path; a directory is refused.
        """
        cdef Store store = Store.__new__(Store)
        cdef bytes encoded = PyUnicode_EncodeFSDefault(path) if isinstance(path, str) else path
        cdef const char* where = PyBytes_AsString(encoded)
        cdef int fd
        if <size_t> len(encoded) != strlen(where):
            raise ValueError("embedded null byte in path")
        with nogil:
            fd = c_open(where, O_RDONLY | O_CLOEXEC)
        if fd < 0:
            raise_errno(errno, encoded)
        store._fd = fd
        store.name = os.fsdecode(path) if name is None else name
        store._stat(encoded)
        return store

    @staticmethod
    def memory(data, int64_t base=0, name="<bytes>"):
        """Read from a contiguous buffer whose first byte is byte `base` of the file."""
        cdef Store store = Store.__new__(Store)
        store.name = name
        PyObject_GetBuffer(data, &store._view, PyBUF_SIMPLE)
        store._held = True
        store._data = <const uint8_t*> store._view.buf
        store._base = base
        store.size = base + store._view.len
        return store

    @property
    def identity(self):
        """Inode, size in bytes and modification time in ns; zeros for memory but the size."""
        return self._inode, self.size, self._modified_ns

    cdef int _stat(self, path) except -1:
        cdef struct_stat info
        if fstat(self._fd, &info) < 0:
            raise_errno(errno, path)
        if S_ISDIR(info.st_mode):
            raise_errno(EISDIR, path)
        self.size = info.st_size
        self._inode = info.st_ino
        self._modified_ns = info.st_mtim.tv_sec * 1_000_000_000 + info.st_mtim.tv_nsec
        return 0

    def check_size(self, BlobHeader header not None):
        """Refuse a header whose frames end elsewhere than the file.

        Raises
        ------
        StaleHeaderError
            If the sizes differ.
        """
        if self.size != header.file_size:
            raise StaleHeaderError(
                f"{self.name}: the header describes a file of {header.file_size} bytes, found "
                f"{self.size}: the file was truncated or replaced; rebuild the header with "
                "rumi.index"
            )

    def read(self, int64_t start, int64_t size):
        """Return bytes start..start+size, fewer only where the file ends."""
        cdef int64_t available = max(<int64_t> 0, min(size, self.size - start))
        cdef Failure failure
        if start < self._base or size < 0:
            raise ValueError(
                f"expected a range from byte {self._base} on, found {size} bytes at {start}"
            )
        data = PyBytes_FromStringAndSize(NULL, available)
        failure.status = OK
        if available and self.read_into(
            start, available, <uint8_t*> PyBytes_AsString(data), &failure
        ):
            if failure.status == IO_FAILED:
                raise_errno(failure.code, None)
            return data[:failure.found]
        return data

    cdef int read_into(
        self, int64_t start, int64_t size, uint8_t* dst, Failure* failure
    ) noexcept nogil:
        """Fill `dst`; on failure say why and how many bytes there were."""
        cdef int64_t done = 0
        cdef ssize_t got
        if self._data != NULL:
            if start < self._base or size > self.size - start:
                failure.status = SHORT_FILE
                failure.expected = size
                failure.found = max(<int64_t> 0, self.size - start)
                return 1
            memcpy(dst, self._data + (start - self._base), size)
            return 0
        while done < size:
            got = pread(self._fd, dst + done, size - done, start + done)
            if got > 0:
                done += got
                continue
            if got < 0 and errno == EINTR:
                # Signal handlers run as soon as the caller is back in Python.
                continue
            failure.status = IO_FAILED if got < 0 else SHORT_FILE
            failure.code = errno
            failure.expected = size
            failure.found = done
            return 1
        return 0

    cdef const uint8_t* point(self, int64_t start, int64_t size) noexcept nogil:
        """Return the memory of a range, NULL where it must be read into a buffer."""
        if self._data == NULL or start < self._base or size > self.size - start:
            return NULL
        return self._data + (start - self._base)

    cdef list fetch(self, Plan plan, int64_t first, int64_t stop):
        """Return the frames as bytes objects, read straight into them."""
        cdef iovec vectors[MAX_VECTORS]
        cdef int used = 0
        cdef int64_t position, gap, wanted, end
        cdef Frame* frame
        cdef list frames = []
        cdef ssize_t got
        cdef Failure failure
        failure.status = OK
        skipped = _reserve_gaps(plan, first, stop)
        wanted = 0
        end = plan.frames[first].offset
        for position in range(first, stop):
            frame = &plan.frames[position]
            if self._data != NULL:
                if self.point(frame.offset, frame.size) == NULL:
                    failure.status = SHORT_FILE
                    failure.position = position
                    failure.expected = frame.size
                    failure.found = max(<int64_t> 0, self.size - frame.offset)
                    raise_failure(plan, &failure, self.name)
                frames.append(PyBytes_FromStringAndSize(
                    <const char*> self.point(frame.offset, frame.size), frame.size
                ))
                continue
            gap = frame.offset - end
            if gap > 0:
                # What lies between is read away. Vectors share this memory, so it
                # must not move: it is as large as the largest gap from the start.
                vectors[used].iov_base = PyByteArray_AsString(skipped)
                vectors[used].iov_len = gap
                used += 1
            data = PyBytes_FromStringAndSize(NULL, frame.size)
            frames.append(data)
            vectors[used].iov_base = PyBytes_AsString(data)
            vectors[used].iov_len = frame.size
            used += 1
            wanted += gap + frame.size
            end = frame.offset + frame.size
        if self._data != NULL:
            return frames
        with nogil:
            got = preadv(self._fd, vectors, used, plan.frames[first].offset)
        if got != wanted:
            self._fetch_slowly(plan, first, frames)
        return frames

    cdef int _fetch_slowly(
        self, Plan plan, int64_t first, list frames
    ) except -1:
        """Read frame by frame after a short or interrupted read, to finish it or say why not."""
        cdef int64_t position
        cdef Frame* frame
        cdef uint8_t* dst
        cdef Failure failure
        cdef int failed
        failure.status = OK
        for position in range(len(frames)):
            frame = &plan.frames[first + position]
            dst = <uint8_t*> PyBytes_AsString(frames[position])
            with nogil:
                failed = self.read_into(frame.offset, frame.size, dst, &failure)
            if failed:
                failure.position = first + position
                raise_failure(plan, &failure, self.name)
        return 0


cdef bytearray _reserve_gaps(Plan plan, int64_t first, int64_t stop):
    """Return memory as large as the largest gap between the frames of a run."""
    cdef int64_t largest = 0
    cdef int64_t position
    for position in range(first + 1, stop):
        largest = max(
            largest,
            plan.frames[position].offset
            - plan.frames[position - 1].offset - plan.frames[position - 1].size,
        )
    return bytearray(largest) if largest else None
