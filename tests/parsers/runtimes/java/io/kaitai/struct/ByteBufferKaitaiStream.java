package io.kaitai.struct;

import java.io.IOException;

public class ByteBufferKaitaiStream extends KaitaiStream {
    public ByteBufferKaitaiStream(String name) throws IOException {}
}
