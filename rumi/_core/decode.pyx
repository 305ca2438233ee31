"""Decoding frames and scattering their samples into one destination.

Two backends give the same samples:

* ``openzl``, the required binding. It holds the GIL and decodes built-in graphs.
* ``geozl``, found at run time and called through a function pointer without
  the GIL. It also decodes geozl's spatial predictors, and scales with threads.

The size of every frame is checked before and after decoding against the tile
it stands for; what a frame declares is never used to allocate.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, getenv, realloc
from libc.string cimport memcmp, memcpy, strlen
from posix.fcntl cimport O_CLOEXEC, O_RDONLY, open as c_open
from posix.stat cimport S_ISDIR, fstat, struct_stat
from posix.unistd cimport close as c_close, pread

from rumi._core.header cimport BlobHeader
from rumi._core.plan cimport Frame, Plan, Rect

import os

from openzl import ext as openzl

from rumi.errors import (
    CodecError, FormatError, StaleHeaderError, TruncatedError, UnsupportedError,
)

cdef extern from "Python.h":
    bytes PyUnicode_EncodeFSDefault(str text)

cdef extern from "sys/uio.h" nogil:
    cdef struct iovec:
        void* iov_base
        size_t iov_len
    ssize_t preadv(int fd, const iovec* iov, int count, int64_t offset)

cdef extern from *:
    """
    #include <stdint.h>
    /* The part of a DLPack capsule that names the memory of an OpenZL output. */
    typedef struct {
        void *data;
        struct { int32_t type, id; } device;
        int32_t ndim;
        struct { uint8_t code, bits; uint16_t lanes; } dtype;
        int64_t *shape;
        int64_t *strides;
        uint64_t byte_offset;
    } RumiTensor;
    static inline const char *rumi_tensor_data(const RumiTensor *t)
    { return (const char *)t->data + t->byte_offset; }
    static inline int64_t rumi_tensor_size(const RumiTensor *t)
    {
        int64_t size = ((int64_t)t->dtype.bits * t->dtype.lanes + 7) / 8;
        for (int32_t i = 0; i < t->ndim; ++i) size *= t->shape[i];
        return size;
    }
    static inline int64_t rumi_take(int64_t *next, int64_t count)
    { return __atomic_fetch_add(next, count, __ATOMIC_RELAXED); }
    """
    ctypedef struct RumiTensor:
        pass
    const char* rumi_tensor_data(const RumiTensor* tensor) nogil
    int64_t rumi_tensor_size(const RumiTensor* tensor) nogil
    int64_t rumi_take(int64_t* counter, int64_t count) nogil

# geozl's C ABI, the same from 0.13 on.
ctypedef int (*geozl_decompress_t)(
    const void* frame, size_t size, void* dst, size_t capacity, size_t* written,
    int verify, char* message, size_t message_size,
) noexcept nogil
ctypedef size_t (*geozl_size_t)(const void* frame, size_t size) noexcept nogil

cdef enum:
    MAX_VECTORS = 64          # frames that one preadv scatters into
    DEFAULT_GAP = 4096        # bytes that are cheaper to read than to skip
    DEFAULT_RANGE = 8 << 20   # bytes that one read fetches at most
    MESSAGE_SIZE = 512
    FRAME_MAGIC = 0xD7B1A5C0  # + frame format version
    FRAME_VERSIONS = 64       # room for the version in the magic number

# What one decode of one frame can end in, kept free of Python objects.
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

cdef struct Sink:
    char* data
    Py_ssize_t band       # strides in bytes
    Py_ssize_t row
    Py_ssize_t col
    int itemsize

cdef geozl_decompress_t _geozl_decompress = NULL
cdef geozl_size_t _geozl_size = NULL


def environment(bytes name not None):
    """Return an environment variable as bytes, None where it is not set.

    Asks the C library, which sees what ``os.environ`` was set to, in a
    twentieth of the time.
    """
    cdef const char* value = getenv(PyBytes_AsString(name))
    return None if value == NULL else <bytes> value


def set_geozl(uintptr_t decompress, uintptr_t frame_size):
    """Install the addresses of geozl's two functions; zeros take them out."""
    global _geozl_decompress, _geozl_size
    _geozl_decompress = <geozl_decompress_t> decompress
    _geozl_size = <geozl_size_t> frame_size


# -- scatter -------------------------------------------------------------------

cdef inline void _copy_elements(
    char* dst, Py_ssize_t dst_step, const char* src, int64_t count, int itemsize
) noexcept nogil:
    """Copy one row of samples to evenly spaced places."""
    cdef int64_t i
    if itemsize == 1:
        for i in range(count):
            dst[i * dst_step] = src[i]
    elif itemsize == 2:
        for i in range(count):
            memcpy(dst + i * dst_step, src + 2 * i, 2)
    elif itemsize == 4:
        for i in range(count):
            memcpy(dst + i * dst_step, src + 4 * i, 4)
    elif itemsize == 8:
        for i in range(count):
            memcpy(dst + i * dst_step, src + 8 * i, 8)
    else:
        for i in range(count):
            memcpy(dst + i * dst_step, src + 16 * i, 16)


cdef void _copy_rect(
    const Sink* sink, int64_t band, const Rect* rect, const char* plane
) noexcept nogil:
    """Copy the overlap of one tile plane with the window into band `band`."""
    cdef int itemsize = sink.itemsize
    cdef int64_t step = rect.tile_width * itemsize
    cdef int64_t row_bytes = rect.width * itemsize
    cdef const char* src = plane + rect.source_row * step + rect.source_col * itemsize
    cdef char* dst = (
        sink.data + band * sink.band + rect.dest_row * sink.row + rect.dest_col * sink.col
    )
    cdef int64_t row
    if sink.col == itemsize and row_bytes == step and sink.row == row_bytes:
        memcpy(dst, src, rect.height * row_bytes)
    elif sink.col == itemsize:
        for row in range(rect.height):
            memcpy(dst + row * sink.row, src + row * step, row_bytes)
    else:
        for row in range(rect.height):
            _copy_elements(dst + row * sink.row, sink.col, src + row * step, rect.width, itemsize)


cdef void _scatter(
    Plan plan, const Frame* frame, const Rect* rect, const char* samples, const Sink* sink
) noexcept nogil:
    """Copy one decoded frame to every place of the destination that shows it."""
    cdef int64_t plane = rect.tile_height * rect.tile_width * sink.itemsize
    cdef int64_t slot = frame.slot
    cdef int64_t stop = slot + 1
    cdef int64_t position
    cdef const char* src
    if plan.frame_bands > 1:
        slot = 0
        stop = plan.slot_count
    while slot < stop:
        src = samples
        if plan.frame_bands > 1:
            src = samples + plan.slot_band[slot] * plane
        for position in range(plan.slot_start[slot], plan.slot_start[slot + 1]):
            _copy_rect(sink, plan.destination[position], rect, src)
        slot += 1


cdef char* _direct(
    Plan plan, const Frame* frame, const Rect* rect, const Sink* sink
) noexcept nogil:
    """Return where a frame can be decoded in place, or NULL where it must be copied."""
    cdef int64_t row_bytes = rect.tile_width * sink.itemsize
    cdef int64_t slot
    cdef char* dst
    if rect.height != rect.tile_height or rect.width != rect.tile_width:
        return NULL
    if sink.col != sink.itemsize or sink.row != row_bytes:
        return NULL
    if plan.frame_bands > 1:
        if plan.slot_count != plan.frame_bands or plan.band_count != plan.frame_bands:
            return NULL
        if sink.band != row_bytes * rect.tile_height:
            return NULL
        for slot in range(plan.slot_count):
            if plan.destination[slot] != slot:
                return NULL
        slot = 0
    else:
        slot = frame.slot
        if plan.slot_start[slot + 1] - plan.slot_start[slot] != 1:
            return NULL
    dst = (
        sink.data + plan.destination[plan.slot_start[slot]] * sink.band
        + rect.dest_row * sink.row + rect.dest_col * sink.col
    )
    return dst if <uintptr_t> dst % 8 == 0 else NULL


cdef bint _too_wide(const char* samples, int64_t size, int bits) noexcept nogil:
    """Whether a sample of fewer than 8 bits has bits above its width."""
    cdef uint8_t seen = 0
    cdef int64_t i
    for i in range(size):
        seen |= <uint8_t> samples[i]
    return seen >> bits != 0


# -- where bytes come from and go to ---------------------------------------------

@cython.final
cdef class Target:
    """Writable memory of shape (B, H, W) or (N, B, H, W), any strides.

    Parameters
    ----------
    array : writable buffer with 3 or 4 dimensions
        Destination; its item size must be `itemsize`.
    itemsize : int
        Bytes per sample.

    Raises
    ------
    ValueError
        If the buffer is read-only or has another number of dimensions or item size.
    """

    cdef Py_buffer _view
    cdef bint _held

    def __cinit__(self, array, int itemsize):
        self._held = False
        # Without a format NumPy exports every dtype, those of other packages too.
        PyObject_GetBuffer(array, &self._view, PyBUF_STRIDES | PyBUF_WRITABLE)
        self._held = True
        if self._view.ndim not in (3, 4) or self._view.itemsize != itemsize:
            raise ValueError(
                f"expected 3 or 4 dimensions of {itemsize}-byte samples, found "
                f"{self._view.ndim} of {self._view.itemsize}"
            )

    def __dealloc__(self):
        if self._held:
            PyBuffer_Release(&self._view)

    cdef int sink(self, Plan plan, int64_t item, Sink* sink) except -1:
        """Point `sink` at item `item`, whose shape must be the plan's."""
        cdef int lead = self._view.ndim - 3
        cdef Py_ssize_t* shape = self._view.shape + lead
        cdef Py_ssize_t* strides = self._view.strides + lead
        if (
            shape[0] != plan.band_count or shape[1] != plan.height or shape[2] != plan.width
            or self._view.itemsize != plan.header.itemsize
            or item < 0 or item >= (self._view.shape[0] if lead else 1)
        ):
            raise ValueError(
                f"expected room for {plan.shape} samples of {plan.header.itemsize} bytes, found "
                f"{(shape[0], shape[1], shape[2])} of {self._view.itemsize}"
            )
        sink.data = <char*> self._view.buf
        if lead:
            sink.data += item * self._view.strides[0]
        sink.band = strides[0]
        sink.row = strides[1]
        sink.col = strides[2]
        sink.itemsize = <int> self._view.itemsize
        return 0


@cython.final
cdef class Store:
    """Bytes of one file: a descriptor read by position, or memory.

    Make one with `open_path` or `memory`. `name` is what errors call the file;
    `size` is in bytes; `identity` tells one state of a local file from another.
    """

    cdef int _fd
    cdef Py_buffer _view
    cdef bint _held
    cdef const uint8_t* _data
    cdef int64_t _base
    cdef readonly object name
    cdef readonly int64_t size
    cdef int64_t _modified_ns
    cdef uint64_t _inode

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
            _raise_errno(errno, encoded)
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
            _raise_errno(errno, path)
        if S_ISDIR(info.st_mode):
            _raise_errno(21, path)
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
        if start < 0 or size < 0:
            raise ValueError(f"expected a range inside the file, found {size} bytes at {start}")
        data = PyBytes_FromStringAndSize(NULL, available)
        failure.status = OK
        if available and self._read_into(
            start, available, <uint8_t*> PyBytes_AsString(data), &failure
        ):
            if failure.status == IO_FAILED:
                _raise_errno(failure.code, None)
            return data[:failure.found]
        return data

    cdef int _read_into(
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

    cdef const uint8_t* _point(self, int64_t start, int64_t size) noexcept nogil:
        """Return the memory of a range, NULL where it must be read into a buffer."""
        if self._data == NULL or start < self._base or size > self.size - start:
            return NULL
        return self._data + (start - self._base)


cdef object _raise_errno(int number, path):
    if path is None:
        raise OSError(number, os.strerror(number))
    raise OSError(number, os.strerror(number), os.fsdecode(path))


# -- decoding ----------------------------------------------------------------------

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


@cython.final
cdef class Counter:
    """The next frame nobody has taken; shared by the threads of one read."""

    cdef int64_t _next

    cpdef void stop(self) noexcept:
        """Let every thread find nothing left to do."""
        rumi_take(&self._next, <int64_t> 1 << 62)


@cython.final
cdef class Decoder:
    """The decoding state of one thread.

    Parameters
    ----------
    backend : {"auto", "openzl", "geozl"}
        "openzl" is the binding; "auto" too, until `teach` has given it more
        codecs. "geozl" must have been installed with `set_geozl`.

    Raises
    ------
    UnsupportedError
        If geozl is asked for and absent.

    Notes
    -----
    One thread at a time. Keeps a scratch buffer of the largest frame decoded
    so far, in samples and in compressed bytes.
    """

    cdef readonly str backend
    cdef readonly bint taught
    cdef readonly Py_ssize_t done
    cdef object _context
    cdef object _decompress
    cdef object _frame_info
    cdef uint8_t* _samples
    cdef int64_t _samples_size
    cdef uint8_t* _compressed
    cdef int64_t _compressed_size

    def __cinit__(self, str backend="openzl"):
        self._samples = NULL
        self._compressed = NULL
        self._samples_size = 0
        self._compressed_size = 0
        self.backend = backend
        self.taught = False
        self.done = 0
        if backend in ("auto", "openzl"):
            self._context = openzl.DCtx()
            self._context.set_parameter(openzl.DParam.StickyParameters, 1)
            self._context.set_parameter(openzl.DParam.CheckCompressedChecksum, 1)
            self._context.set_parameter(openzl.DParam.CheckContentChecksum, 1)
            self._decompress = self._context.decompress
            self._frame_info = openzl.FrameInfo
        elif backend != "geozl":
            raise ValueError(f"backend is 'auto', 'openzl' or 'geozl', found {backend!r}")
        elif _geozl_decompress == NULL:
            raise UnsupportedError("geozl is not installed: pip install 'rumi[geozl]'")

    def __dealloc__(self):
        free(self._samples)
        free(self._compressed)

    def teach(self, register):
        """Let `register` add decoders to the binding's context; once."""
        register(self._context)
        self.taught = True

    def decode(
        self, Plan plan not None, Store store not None, Target target not None, int64_t item=0,
        int64_t first=0, int64_t stop=-1, int64_t gap=DEFAULT_GAP, int64_t largest=DEFAULT_RANGE,
    ):
        """Fetch and decode frames first..stop of a plan into one item of the target.

        Parameters
        ----------
        plan : Plan
        store : Store
        target : Target
        item : int
            Position along the first axis of a 4-D target.
        first, stop : int
            Frames of the plan, the end exclusive; -1 means all.
        gap, largest : int
            How neighbouring frames merge into one read, in bytes.

        Raises
        ------
        CodecError
            If a frame does not decode to exactly its tile.
        UnsupportedError
            If a frame needs geozl and this decoder has only openzl.
        TruncatedError
            If the source ends inside a frame.
        OSError
            If reading fails.
        """
        if stop < 0:
            stop = plan.frame_count
        if not 0 <= first <= stop <= plan.frame_count:
            raise ValueError(f"frames {first}..{stop} are outside the plan's {plan.frame_count}")
        self._decode(plan, store, target, item, first, stop, gap, largest)

    cdef int _decode(
        self, Plan plan, Store store, Target target, int64_t item, int64_t first, int64_t stop,
        int64_t gap, int64_t largest,
    ) except -1:
        cdef Sink sink
        cdef Failure failure
        target.sink(plan, item, &sink)
        if self._context is not None:
            self._decode_openzl(plan, store, &sink, first, stop, gap, largest)
            return 0
        failure.status = OK
        with nogil:
            self._decode_geozl(plan, store, &sink, first, stop, gap, largest, &failure)
        if failure.status != OK:
            _raise_failure(plan, &failure, store.name)
        return 0

    def decode_items(
        self, list sources not None, list plans not None, Target target not None, int64_t item
    ):
        """Decode one plan of each source into consecutive items of the target.

        Parameters
        ----------
        sources : list of str or Store
            Paths are opened here; neighbours that are equal share a handle.
        plans : list of Plan
            Of the target's shape, and all of one encoding.
        target : Target
        item : int
            Item of the first plan; the following ones follow it.

        Raises
        ------
        StaleHeaderError
            If a file's size is not that of its header.
        ValueError
            If a plan has another encoding or shape than the first one or the target.
        CodecError, UnsupportedError, TruncatedError, OSError
            As `decode` and `Store.open_path`.

        Notes
        -----
        After an error `done` says how many plans were decoded before it.
        """
        cdef Py_ssize_t position
        cdef Plan plan
        cdef Plan first
        cdef Store store = None
        cdef object opened = None
        self.done = 0
        if len(plans) != len(sources):
            raise ValueError(f"expected {len(sources)} plans, found {len(plans)}")
        for position in range(len(plans)):
            source = sources[position]
            plan = plans[position]
            first = plans[0]
            if isinstance(source, Store):
                store = source
            elif store is None or opened is not source and opened != source:
                store = Store.open_path(source, source)
            opened = source
            if store.size != plan.header.file_size:
                store.check_size(plan.header)
            if not plan.header.same_encoding(first.header):
                raise ValueError("expected samples of one encoding, found another one")
            self._decode(
                plan, store, target, item + position, 0, plan.frame_count,
                DEFAULT_GAP, DEFAULT_RANGE,
            )
            self.done += 1

    def decode_shared(
        self, Plan plan not None, Store store not None, Target target not None,
        Counter counter not None, int64_t chunk=4, int64_t item=0, int64_t gap=DEFAULT_GAP,
        int64_t largest=DEFAULT_RANGE,
    ):
        """Take chunks of frames from `counter` until none is left; geozl only.

        Raises as `decode`, after telling the other threads to stop.
        """
        cdef Sink sink
        cdef Failure failure
        cdef int64_t first
        target.sink(plan, item, &sink)
        if self.backend != "geozl":
            raise ValueError("the openzl binding holds the GIL; use decode")
        failure.status = OK
        with nogil:
            first = rumi_take(&counter._next, chunk)
            while first < plan.frame_count and failure.status == OK:
                self._decode_geozl(
                    plan, store, &sink, first, min(first + chunk, plan.frame_count),
                    gap, largest, &failure,
                )
                first = rumi_take(&counter._next, chunk)
        if failure.status != OK:
            counter.stop()
            _raise_failure(plan, &failure, store.name)

    def matches(self, bytes frame not None, const uint8_t[::1] samples not None):
        """Whether a frame decodes to exactly these bytes of samples.

        Raises
        ------
        CodecError
            If it does not decode at all.
        """
        cdef int64_t size = samples.shape[0]
        cdef const uint8_t* data = <const uint8_t*> PyBytes_AsString(frame)
        cdef size_t compressed = len(frame)
        cdef size_t written = 0
        cdef char message[MESSAGE_SIZE]
        cdef RumiTensor* tensor
        cdef int code
        if size == 0:
            raise ValueError("a frame holds at least one sample")
        if self._context is not None:
            try:
                capsule = self._decompress(frame)[0].content.as_dltensor()
            except RuntimeError as error:
                raise CodecError(f"OpenZL cannot decode it: {openzl_reason(error)}") from error
            tensor = <RumiTensor*> PyCapsule_GetPointer(capsule, b"dltensor")
            if rumi_tensor_size(tensor) != size:
                return False
            return memcmp(rumi_tensor_data(tensor), &samples[0], size) == 0
        if not self._grow(&self._samples, &self._samples_size, size):
            raise MemoryError(f"{size} bytes of samples")
        message[0] = 0
        with nogil:
            code = _geozl_decompress(
                data, compressed, self._samples, size, &written, 1, message, MESSAGE_SIZE
            )
        if code:
            reason = openzl_reason(RuntimeError(message.decode("utf-8", "replace")))
            raise CodecError(f"geozl cannot decode it: {reason}")
        return <int64_t> written == size and memcmp(self._samples, &samples[0], size) == 0

    # -- openzl --

    cdef int _decode_openzl(
        self, Plan plan, Store store, Sink* sink, int64_t first, int64_t stop,
        int64_t gap, int64_t largest,
    ) except -1:
        cdef int64_t end, position
        cdef list frames
        while first < stop:
            end = min(
                plan.run_stop(first, stop, gap, largest), first + MAX_VECTORS // 2
            )
            frames = self._fetch(plan, store, first, end)
            for position in range(first, end):
                self._decode_bytes(
                    plan, position, <bytes> frames[position - first], sink, store.name
                )
            first = end
        return 0

    cdef list _fetch(self, Plan plan, Store store, int64_t first, int64_t stop):
        """Return the frames as bytes objects, read straight into them."""
        cdef iovec vectors[MAX_VECTORS]
        cdef int used = 0
        cdef int64_t position, gap, wanted, end
        cdef Frame* frame
        cdef list frames = []
        cdef ssize_t got
        cdef Failure failure
        failure.status = OK
        self._reserve_gaps(plan, first, stop)
        wanted = 0
        end = plan.frames[first].offset
        for position in range(first, stop):
            frame = &plan.frames[position]
            if store._data != NULL:
                if store._point(frame.offset, frame.size) == NULL:
                    _short(&failure, position, frame, store.size)
                    _raise_failure(plan, &failure, store.name)
                frames.append(PyBytes_FromStringAndSize(
                    <const char*> store._point(frame.offset, frame.size), frame.size
                ))
                continue
            gap = frame.offset - end
            if gap > 0:
                # What lies between is read away. Vectors share this memory, so it
                # must not move: _reserve_gaps has made it as large as the largest.
                vectors[used].iov_base = self._compressed
                vectors[used].iov_len = gap
                used += 1
            data = PyBytes_FromStringAndSize(NULL, frame.size)
            frames.append(data)
            vectors[used].iov_base = PyBytes_AsString(data)
            vectors[used].iov_len = frame.size
            used += 1
            wanted += gap + frame.size
            end = frame.offset + frame.size
        if store._data != NULL:
            return frames
        with nogil:
            got = preadv(store._fd, vectors, used, plan.frames[first].offset)
        if got != wanted:
            self._fetch_slowly(plan, store, first, frames)
        return frames

    cdef int _fetch_slowly(
        self, Plan plan, Store store, int64_t first, list frames
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
                failed = store._read_into(frame.offset, frame.size, dst, &failure)
            if failed:
                failure.position = first + position
                _raise_failure(plan, &failure, store.name)
        return 0

    cdef int _decode_bytes(
        self, Plan plan, int64_t position, bytes data, const Sink* sink, where
    ) except -1:
        cdef Frame* frame = &plan.frames[position]
        cdef Rect rect = plan.rect(frame)
        cdef int64_t expected = plan.decoded_size(frame)
        cdef Failure failure
        cdef RumiTensor* tensor
        failure.status = OK
        failure.position = position
        failure.expected = expected
        if not _has_magic(<const uint8_t*> PyBytes_AsString(data), frame.size):
            failure.status = NOT_A_FRAME
            _raise_failure(plan, &failure, where)
        try:
            info = self._frame_info(data)
            outputs = info.num_outputs
            declared = info.output_content_size(0) if outputs == 1 else -1
        except RuntimeError as error:
            raise _translate(plan, position, openzl_reason(error), where) from error
        if declared != expected:
            raise _size_error(plan, position, expected, declared, outputs, where)
        try:
            capsule = self._decompress(data)[0].content.as_dltensor()
        except RuntimeError as error:
            raise _translate(plan, position, openzl_reason(error), where) from error
        tensor = <RumiTensor*> PyCapsule_GetPointer(capsule, b"dltensor")
        failure.found = rumi_tensor_size(tensor)
        if failure.found != expected:
            failure.status = WRONG_SIZE
            _raise_failure(plan, &failure, where)
        if plan.header.bits_per_sample < 8 and _too_wide(
            rumi_tensor_data(tensor), expected, plan.header.bits_per_sample
        ):
            failure.status = WIDE_SAMPLE
            _raise_failure(plan, &failure, where)
        if rect.height * rect.width > 65536:
            with nogil:
                _scatter(plan, frame, &rect, rumi_tensor_data(tensor), sink)
        else:
            _scatter(plan, frame, &rect, rumi_tensor_data(tensor), sink)
        return 0

    # -- geozl --

    cdef int _reserve_gaps(self, Plan plan, int64_t first, int64_t stop) except -1:
        """Make room for the largest gap between the frames of a run."""
        cdef int64_t largest = 0
        cdef int64_t position
        for position in range(first + 1, stop):
            largest = max(
                largest,
                plan.frames[position].offset
                - plan.frames[position - 1].offset - plan.frames[position - 1].size,
            )
        if not self._grow(&self._compressed, &self._compressed_size, largest):
            raise MemoryError(f"{largest} bytes between frames")
        return 0

    cdef bint _grow(self, uint8_t** buffer, int64_t* capacity, int64_t size) noexcept nogil:
        """Make room for `size` bytes; false where there is no memory."""
        cdef uint8_t* grown
        if size > capacity[0]:
            grown = <uint8_t*> realloc(buffer[0], size)
            if grown == NULL:
                return False
            buffer[0] = grown
            capacity[0] = size
        return True

    cdef void _decode_geozl(
        self, Plan plan, Store store, Sink* sink, int64_t first, int64_t stop,
        int64_t gap, int64_t largest, Failure* failure,
    ) noexcept nogil:
        cdef int64_t end, start, size, position
        cdef const uint8_t* data
        while first < stop:
            end = plan.run_stop(first, stop, gap, largest)
            start = plan.frames[first].offset
            size = plan.frames[end - 1].offset + plan.frames[end - 1].size - start
            data = store._point(start, size)
            if data == NULL:
                failure.position = first
                if not self._grow(&self._compressed, &self._compressed_size, size):
                    failure.status = NO_MEMORY
                    failure.expected = size
                    return
                if store._read_into(start, size, self._compressed, failure):
                    return
                data = self._compressed
            for position in range(first, end):
                failure.position = position
                self._decode_memory(
                    plan, &plan.frames[position], data + (plan.frames[position].offset - start),
                    sink, failure,
                )
                if failure.status != OK:
                    return
            first = end

    cdef void _decode_memory(
        self, Plan plan, const Frame* frame, const uint8_t* data, Sink* sink, Failure* failure
    ) noexcept nogil:
        cdef Rect rect = plan.rect(frame)
        cdef int64_t expected = plan.decoded_size(frame)
        cdef char* dst
        cdef bint direct
        cdef size_t written = 0
        failure.expected = expected
        if not _has_magic(data, frame.size):
            failure.status = NOT_A_FRAME
            return
        failure.found = <int64_t> _geozl_size(data, frame.size)
        if failure.found != expected:
            failure.status = WRONG_SIZE
            return
        dst = _direct(plan, frame, &rect, sink)
        direct = dst != NULL
        if not direct:
            if not self._grow(&self._samples, &self._samples_size, expected):
                failure.status = NO_MEMORY
                return
            dst = <char*> self._samples
        failure.message[0] = 0
        failure.code = _geozl_decompress(
            data, frame.size, dst, expected, &written, 1, failure.message, MESSAGE_SIZE
        )
        if failure.code != 0:
            failure.status = BACKEND_FAILED
            return
        if <int64_t> written != expected:
            failure.status = WRONG_SIZE
            failure.found = <int64_t> written
            return
        if plan.header.bits_per_sample < 8 and _too_wide(
            dst, expected, plan.header.bits_per_sample
        ):
            failure.status = WIDE_SAMPLE
            return
        if not direct:
            _scatter(plan, frame, &rect, dst, sink)


cdef inline bint _has_magic(const uint8_t* data, int64_t size) noexcept nogil:
    cdef uint32_t word
    if size < 4:
        return False
    memcpy(&word, data, 4)
    return word - <uint32_t> FRAME_MAGIC < FRAME_VERSIONS


cdef void _short(
    Failure* failure, int64_t position, const Frame* frame, int64_t size
) noexcept nogil:
    failure.status = SHORT_FILE
    failure.position = position
    failure.expected = frame.size
    failure.found = max(<int64_t> 0, size - frame.offset)


# -- errors: one place turns a status into an exception ---------------------------------

cdef str _place(Plan plan, int64_t position, where):
    cdef str place = plan.describe(&plan.frames[position])
    return f"{place} of {where}" if where else place


cdef object _size_error(Plan plan, int64_t position, expected, found, outputs, where):
    if outputs != 1:
        return CodecError(
            f"{_place(plan, position, where)}: expected a frame of one output, found {outputs}"
        )
    return CodecError(
        f"{_place(plan, position, where)}: expected a frame of {expected} bytes of samples, "
        f"found one of {found}"
    )


cdef object _translate(Plan plan, int64_t position, str reason, where):
    if "Custom decoder transform" in reason or "ustom decoder" in reason:
        return UnsupportedError(
            f"{_place(plan, position, where)}: needs a geozl codec ({reason}); "
            "pip install 'rumi[geozl]'"
        )
    return CodecError(f"{_place(plan, position, where)}: OpenZL cannot decode it: {reason}")


cdef object _raise_failure(Plan plan, Failure* failure, where):
    cdef str place = _place(plan, failure.position, where)
    if failure.status == NOT_A_FRAME:
        raise CodecError(f"{place}: the bytes do not start with the magic of an OpenZL frame")
    if failure.status == WRONG_SIZE:
        raise _size_error(plan, failure.position, failure.expected, failure.found, 1, where)
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
    raise _translate(
        plan, failure.position,
        openzl_reason(RuntimeError(failure.message.decode("utf-8", "replace"))), where,
    )
