// What the generated C++ asks of the Kaitai Struct runtime library, declared only:
// enough to compile without it, not to link.

#ifndef KAITAI_STRUCT_H
#define KAITAI_STRUCT_H

#include <stdint.h>
#include <stdexcept>
#include <string>

#define KAITAI_STRUCT_VERSION 11000L

namespace kaitai {

class kstream {
public:
    explicit kstream(const std::string& data);
    bool is_eof() const;
    uint64_t pos();
    uint64_t size();
    void seek(uint64_t pos);
    uint8_t read_u1();
    uint16_t read_u2le();
    uint32_t read_u4le();
    uint64_t read_u8le();
    double read_f8le();
    std::string read_bytes(int64_t size);
    std::string read_bytes_full();
};

class kstruct {
public:
    explicit kstruct(kstream* io) : m__io(io) {}
    virtual ~kstruct() {}

protected:
    kstream* m__io;

public:
    kstream* _io() { return m__io; }
};

template <typename T>
class validation_failed_error : public std::runtime_error {
public:
    validation_failed_error(const std::string& what, kstream* io, const std::string& path);
};

template <typename T>
class validation_not_equal_error : public validation_failed_error<T> {
public:
    validation_not_equal_error(const T& expected, const T& actual, kstream* io, const std::string& path);
};

template <typename T>
class validation_less_than_error : public validation_failed_error<T> {
public:
    validation_less_than_error(const T& least, const T& actual, kstream* io, const std::string& path);
};

template <typename T>
class validation_greater_than_error : public validation_failed_error<T> {
public:
    validation_greater_than_error(const T& most, const T& actual, kstream* io, const std::string& path);
};

template <typename T>
class validation_not_any_of_error : public validation_failed_error<T> {
public:
    validation_not_any_of_error(const T& actual, kstream* io, const std::string& path);
};

template <typename T>
class validation_not_in_enum_error : public validation_failed_error<T> {
public:
    validation_not_in_enum_error(const T& actual, kstream* io, const std::string& path);
};

template <typename T>
class validation_expr_error : public validation_failed_error<T> {
public:
    validation_expr_error(const T& actual, kstream* io, const std::string& path);
};

}  // namespace kaitai

#endif
