// The trainer's interface to Millrace, in C++11. loader.cpp defines it with the name LOADER and its own flags.
#pragma once

#include <cstddef>
#include <cstdint>

struct rows {
  const std::uint8_t* pixels;
  const float* numbers;
  const std::int32_t* labels;
  std::size_t count;
};

struct loader_interface {
  virtual ~loader_interface() {}
  /// Returns false after the last batch. The rows stay valid until the next call.
  virtual bool next(rows& to) = 0;
};

/// Never throws: returns a null pointer and prints why.
extern "C" __attribute__((visibility("default"))) loader_interface* first_loader(const char* shards, int workers);
extern "C" __attribute__((visibility("default"))) loader_interface* second_loader(const char* shards, int workers);

/// Writes the shards that the loaders read. The first one's file defines it.
extern "C" __attribute__((visibility("default"))) void write_shards(const char* folder);

enum { side = 48 };   // of the square images
