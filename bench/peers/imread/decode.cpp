// The functions of millrace_decoder.py, in C: the size of a JPEG, and its pixels.
#include <millrace/adapt/python.hpp>
#include <millrace/millrace.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

namespace mr = millrace;

namespace {

mr::picture picture_of(const void* file, std::size_t bytes) {
  return mr::jpeg(mr::bytes::borrowed({static_cast<const std::byte*>(file), bytes}));
}

}   // namespace

/// Writes height and width. Returns whether the file is a JPEG.
extern "C" [[gnu::visibility("default")]] int size_of_jpeg(const void* file, std::size_t bytes, std::size_t* sides) {
  try {
    const mr::picture p = picture_of(file, bytes);
    sides[0] = p.height();
    sides[1] = p.width();
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}

/// Decodes to `size` bytes, [height, width, 3]. Returns whether the file is undamaged.
extern "C" [[gnu::visibility("default")]] int decode_jpeg(const void* file, std::size_t bytes, std::uint8_t* rows,
                                                          std::size_t size) {
  thread_local mr::scratch s;
  try {
    picture_of(file, bytes).render({rows, size}, s);
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}

PyMODINIT_FUNC PyInit_decode() {
  static PyModuleDef definition{
      PyModuleDef_HEAD_INIT, "decode", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
  return PyModule_Create(&definition);
}
