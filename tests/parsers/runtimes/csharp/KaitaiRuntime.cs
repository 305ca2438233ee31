// What the generated C# asks of the Kaitai Struct runtime library, declared only.

using System;

namespace Kaitai
{
    public class KaitaiStream
    {
        public KaitaiStream(string path) {}
        public KaitaiStream(byte[] data) {}
        public bool IsEof { get { throw new NotSupportedException(); } }
        public long Pos { get { throw new NotSupportedException(); } }
        public long Size { get { throw new NotSupportedException(); } }
        public void Seek(long position) {}
        public byte ReadU1() { throw new NotSupportedException(); }
        public ushort ReadU2le() { throw new NotSupportedException(); }
        public uint ReadU4le() { throw new NotSupportedException(); }
        public ulong ReadU8le() { throw new NotSupportedException(); }
        public long ReadS8le() { throw new NotSupportedException(); }
        public double ReadF8le() { throw new NotSupportedException(); }
        public byte[] ReadBytes(long count) { throw new NotSupportedException(); }
        public byte[] ReadBytesFull() { throw new NotSupportedException(); }
        public static int ByteArrayCompare(byte[] one, byte[] other) { throw new NotSupportedException(); }
    }

    public abstract class KaitaiStruct
    {
        protected KaitaiStream m_io;
        public KaitaiStream M_Io { get { return m_io; } }
        public KaitaiStruct(KaitaiStream io) { m_io = io; }
    }

    public class ValidationFailedError : Exception {}

    public class ValidationNotEqualError : ValidationFailedError
    {
        public ValidationNotEqualError(object expected, object actual, KaitaiStream io, string path) {}
    }

    public class ValidationLessThanError : ValidationFailedError
    {
        public ValidationLessThanError(object least, object actual, KaitaiStream io, string path) {}
    }

    public class ValidationGreaterThanError : ValidationFailedError
    {
        public ValidationGreaterThanError(object most, object actual, KaitaiStream io, string path) {}
    }

    public class ValidationNotAnyOfError : ValidationFailedError
    {
        public ValidationNotAnyOfError(object actual, KaitaiStream io, string path) {}
    }

    public class ValidationNotInEnumError : ValidationFailedError
    {
        public ValidationNotInEnumError(object actual, KaitaiStream io, string path) {}
    }

    public class ValidationExprError : ValidationFailedError
    {
        public ValidationExprError(object actual, KaitaiStream io, string path) {}
    }
}
