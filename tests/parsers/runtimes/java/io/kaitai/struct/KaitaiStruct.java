package io.kaitai.struct;

public class KaitaiStruct {
    protected KaitaiStream _io;

    public KaitaiStruct(KaitaiStream io) {
        _io = io;
    }

    public KaitaiStream _io() {
        return _io;
    }
}
