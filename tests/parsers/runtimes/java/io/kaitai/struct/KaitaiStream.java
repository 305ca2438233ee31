// What the generated Java asks of the Kaitai Struct runtime library, declared only.
package io.kaitai.struct;

public class KaitaiStream {
    public native boolean isEof();
    public native void seek(int position);
    public native void seek(long position);
    public native int pos();
    public native long size();
    public native int readU1();
    public native int readU2le();
    public native long readU4le();
    public native long readU8le();
    public native double readF8le();
    public native byte[] readBytes(long count);
    public native byte[] readBytesFull();
    public native KaitaiStream substream(long count);

    public static class KaitaiStructError extends RuntimeException {}

    public static class ValidationFailedError extends KaitaiStructError {}

    public static class ValidationNotEqualError extends ValidationFailedError {
        public ValidationNotEqualError(Object expected, Object actual, KaitaiStream io, String path) {}
    }

    public static class ValidationLessThanError extends ValidationFailedError {
        public ValidationLessThanError(Object least, Object actual, KaitaiStream io, String path) {}
    }

    public static class ValidationGreaterThanError extends ValidationFailedError {
        public ValidationGreaterThanError(Object most, Object actual, KaitaiStream io, String path) {}
    }

    public static class ValidationNotAnyOfError extends ValidationFailedError {
        public ValidationNotAnyOfError(Object actual, KaitaiStream io, String path) {}
    }

    public static class ValidationNotInEnumError extends ValidationFailedError {
        public ValidationNotInEnumError(Object actual, KaitaiStream io, String path) {}
    }

    public static class ValidationExprError extends ValidationFailedError {
        public ValidationExprError(Object actual, KaitaiStream io, String path) {}
    }
}
