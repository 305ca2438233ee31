"""Decoding frames and scattering their samples into one destination.

Two backends give the same samples:

* ``openzl``, the required binding. It holds the GIL and decodes built-in graphs.
* ``geozl``, found at run time and called through a function pointer without
  the GIL. It also decodes geozl's spatial predictors, and scales with threads.

The size of every frame is checked before and after decoding against the tile
it stands for; what a frame declares is never used to allocate.
"""

cimport cython
from cpython.bytes cimport PyBytes_AsString
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uintptr_t
from libc.stdlib cimport free, getenv, realloc
from libc.string cimport memcmp, memcpy

from rumi._core.failure cimport (
    BACKEND_FAILED, MESSAGE_SIZE, NO_MEMORY, NOT_A_FRAME, OK, WIDE_SAMPLE, WRONG_SIZE, Failure,
    raise_failure, size_error, translate,
)
from rumi._core.plan cimport Frame, Plan, Rect
from rumi._core.scatter cimport Sink, Target, place_for, scatter, too_wide
from rumi._core.store cimport MAX_VECTORS, Store

from openzl import ext as openzl

from rumi._core.failure import openzl_reason
from rumi.errors import CodecError, UnsupportedError

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
    static inline void rumi_close(int64_t *next)
    { __atomic_store_n(next, (int64_t)1 << 61, __ATOMIC_RELAXED); }
    """
    ctypedef struct RumiTensor:
        pass
    const char* rumi_tensor_data(const RumiTensor* tensor) nogil
    int64_t rumi_tensor_size(const RumiTensor* tensor) nogil
    int64_t rumi_take(int64_t* counter, int64_t count) nogil
    void rumi_close(int64_t* counter) nogil

# geozl's C ABI, the same from 0.13 on.
ctypedef int (*geozl_decompress_t)(
    const void* frame, size_t size, void* dst, size_t capacity, size_t* written,
    int verify, char* message, size_t message_size,
) noexcept nogil
ctypedef size_t (*geozl_size_t)(const void* frame, size_t size) noexcept nogil

cdef enum:
    DEFAULT_GAP = 4096        # bytes that are cheaper to read than to skip
    DEFAULT_RANGE = 8 << 20   # bytes that one read fetches at most
    MAGIC_BASE = 0xD7B1A5C0   # of a frame: this plus its format version
    FRAME_VERSIONS = 64       # room for the version in the magic number

FRAME_MAGIC = <uint32_t> MAGIC_BASE

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


@cython.final
cdef class Counter:
    """The next frame nobody has taken; shared by the threads of one read."""

    cdef int64_t _next

    cpdef void stop(self) noexcept:
        """Let every thread find nothing left to do."""
        # Far beyond any plan, and as far from the largest number: however often
        # threads take from it afterwards, it cannot come round.
        rumi_close(&self._next)


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
            raise_failure(plan, &failure, store.name)
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
            raise_failure(plan, &failure, store.name)

    def samples(self, bytes frame not None):
        """Decode one frame and return its samples as bytes; binding only.

        Allocates what the frame declares: check that first.

        Raises
        ------
        RuntimeError
            As OpenZL's binding raises it.
        """
        return self._decompress(frame)[0].content.as_bytes()

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
            frames = store.fetch(plan, first, end)
            for position in range(first, end):
                self._decode_bytes(
                    plan, position, <bytes> frames[position - first], sink, store.name
                )
            first = end
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
            raise_failure(plan, &failure, where)
        try:
            info = self._frame_info(data)
            outputs = info.num_outputs
            declared = info.output_content_size(0) if outputs == 1 else -1
        except RuntimeError as error:
            raise translate(plan, position, openzl_reason(error), where) from error
        if declared != expected:
            raise size_error(plan, position, expected, declared, outputs, where)
        try:
            capsule = self._decompress(data)[0].content.as_dltensor()
        except RuntimeError as error:
            raise translate(plan, position, openzl_reason(error), where) from error
        tensor = <RumiTensor*> PyCapsule_GetPointer(capsule, b"dltensor")
        failure.found = rumi_tensor_size(tensor)
        if failure.found != expected:
            failure.status = WRONG_SIZE
            raise_failure(plan, &failure, where)
        if plan.header.bits_per_sample < 8 and too_wide(
            rumi_tensor_data(tensor), expected, plan.header.bits_per_sample
        ):
            failure.status = WIDE_SAMPLE
            raise_failure(plan, &failure, where)
        if rect.height * rect.width > 65536:
            with nogil:
                scatter(plan, frame, &rect, rumi_tensor_data(tensor), sink)
        else:
            scatter(plan, frame, &rect, rumi_tensor_data(tensor), sink)
        return 0

    # -- geozl --

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
            data = store.point(start, size)
            if data == NULL:
                failure.position = first
                if not self._grow(&self._compressed, &self._compressed_size, size):
                    failure.status = NO_MEMORY
                    failure.expected = size
                    return
                if store.read_into(start, size, self._compressed, failure):
                    _name_frame(plan, first, end, start, failure)
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
        cdef bint in_place
        cdef size_t written = 0
        failure.expected = expected
        if not _has_magic(data, frame.size):
            failure.status = NOT_A_FRAME
            return
        failure.found = <int64_t> _geozl_size(data, frame.size)
        if failure.found != expected:
            failure.status = WRONG_SIZE
            return
        dst = place_for(plan, frame, &rect, sink)
        in_place = dst != NULL
        if not in_place:
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
        if plan.header.bits_per_sample < 8 and too_wide(
            dst, expected, plan.header.bits_per_sample
        ):
            failure.status = WIDE_SAMPLE
            return
        if not in_place:
            scatter(plan, frame, &rect, dst, sink)


cdef void _name_frame(
    Plan plan, int64_t first, int64_t stop, int64_t start, Failure* failure
) noexcept nogil:
    """Say of which frame of a run the bytes were missing, not of the run."""
    cdef int64_t available = start + failure.found
    cdef int64_t position
    cdef Frame* frame
    for position in range(first, stop):
        frame = &plan.frames[position]
        if frame.offset + frame.size > available:
            failure.position = position
            failure.expected = frame.size
            failure.found = max(<int64_t> 0, available - frame.offset)
            return


cdef inline bint _has_magic(const uint8_t* data, int64_t size) noexcept nogil:
    cdef uint32_t word
    if size < 4:
        return False
    memcpy(&word, data, 4)
    return word - <uint32_t> MAGIC_BASE < FRAME_VERSIONS
