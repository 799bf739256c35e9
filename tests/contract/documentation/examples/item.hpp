// ---- borrowed_guard.hpp
void example(const mr::bytes& data, const mr::error_location& where) {
EXAMPLE
}

// ---- bytes.hpp
#include <millrace/item/record.hpp>

void show(const mr::record& record) {
EXAMPLE 1
}
void numbers(const mr::record& r) {
EXAMPLE 2
}

// ---- slot_contents.hpp
#include <millrace/device/device.hpp>
#include <millrace/item/column/columns.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <span>

struct example {
  mr::ragged<std::uint32_t> words;
};

void show(const mr::detail::columns<&example::words>& layout, mr::device_backend& backend, std::byte* base,
          std::size_t rows, void* to) {
EXAMPLE 1
}
void show(const mr::detail::sample<int>& s, std::size_t row, std::size_t rows) {
EXAMPLE 2
}

// ---- batch_origin.hpp
void show(const mr::position& position) {
EXAMPLE
}

// ---- column_place.hpp
#include <millrace/item/tensor/ragged.hpp>

void show(const mr::ragged<float, 2>& first, std::byte* base, std::size_t rows, std::size_t used_bytes,
          const std::array<std::uint32_t, 3>& lengths) {
EXAMPLE
}

// ---- column_places.hpp
#include <millrace/image/picture/picture.hpp>

void show(std::byte* slot) {
EXAMPLE
}

// ---- column_traits.hpp
#include <millrace/image/picture/picture.hpp>

void show(const std::vector<float>& item, std::span<float> row, mr::scratch& scratch) {
EXAMPLE
}

// ---- columns.hpp
#include <millrace/image/picture/picture.hpp>

void show() {
EXAMPLE 1
}

// ---- member.hpp
#include <millrace/image/picture/picture.hpp>

EXAMPLE 2
void show(const example& one) {
EXAMPLE 1
}

// ---- mixed_columns.hpp
struct example {
  mr::tensor<std::uint8_t, 3> pixels;
  std::int32_t label;
};

void show(const example& first, std::byte* base, const mr::row_mix& how) {
EXAMPLE
}

// ---- row_mix.hpp
void example(std::uint8_t own, std::uint8_t other) {
EXAMPLE
  static_cast<void>(by_cutmix);
  static_cast<void>(mixed);
}

// ---- line.hpp
#include <millrace/text.hpp>

void show(const mr::line& one) {
EXAMPLE
}

// ---- on_damage.hpp
#include <millrace/millrace.hpp>
struct example { std::int32_t label; mr::tensor<float, 1> pixels; };
inline void train_step(const auto&, const auto&) {}
auto make_flow() {
  return mr::from(std::vector<std::int32_t>{1}) | mr::map([](std::int32_t i) { return example{i, {}}; }) |
         mr::batch<&example::pixels>({.size = 1});
}
void run() {
  auto flow = make_flow();
EXAMPLE
}

// ---- packed.hpp
#include <millrace/text.hpp>

std::vector<std::uint32_t> tokenize(std::string_view);

void show() {
EXAMPLE
}

// ---- position.hpp
enum MPI_Datatype { MPI_UINT64_T };
enum MPI_Op { MPI_SUM };
enum MPI_Comm { MPI_COMM_WORLD };
const void* const MPI_IN_PLACE = nullptr;
int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype, MPI_Op, MPI_Comm);

void show(mr::position position, const mr::position& current) {
EXAMPLE
}

// ---- record.hpp
#include <iostream>

void show(const mr::record& r) {
EXAMPLE
}

// ---- record_builder.hpp
void show(mr::block_pool& pool, std::uint64_t offset_bytes, std::size_t size_bytes) {
EXAMPLE
}

// ---- sample.hpp
struct record_reader {
  std::optional<mr::record> next();
};

void show(const mr::record& r, std::uint64_t shard, std::uint64_t index) {
EXAMPLE 1
}
void show(record_reader& reader) {
EXAMPLE 2
}

// ---- scratch.hpp
#include <millrace/item/bytes.hpp>

struct my_decoder {
  void decode(const mr::bytes& frame, std::span<std::uint8_t> row);
  bool repaired() const;
};
struct my_column {
  mr::bytes frame;
EXAMPLE
};

// ---- array.hpp
void show(const mr::record& r) {
EXAMPLE
}

// ---- ragged.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/image/picture/picture.hpp>

std::vector<std::uint32_t> tokenize(std::string_view);

EXAMPLE 1
void show(mr::batch_of<&example::words>& b) {
EXAMPLE 2
}

// ---- tensor.hpp
void show(std::span<const std::size_t> shape) {
EXAMPLE
}

// ---- tensor_view.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/image/picture/picture_list.hpp>
#include <millrace/image/picture/ragged_picture.hpp>
#include <millrace/item/tensor/ragged.hpp>

#include <cstdio>

struct example {
  mr::image pixels;
  std::int32_t label;
  mr::ragged<std::uint32_t> words;
  mr::picture_list pictures;
};
void launch(const std::uint8_t* pixels, std::size_t count, mr::stream_view stream);
void count(std::int32_t label);
void use(const auto& pixels);

void show(mr::batch_of<&example::pixels, &example::label>& b) {
EXAMPLE 1
EXAMPLE 2
EXAMPLE 3
}
void show(mr::batch_of<&example::words, &example::pictures>& b, std::size_t i, std::size_t t) {
EXAMPLE 4
EXAMPLE 6
}
namespace sized {
struct example {
  mr::ragged_picture pixels;
};
void show(mr::batch_of<&example::pixels>& b, std::size_t i, int y, int x) {
EXAMPLE 5
}
}

// ---- world.hpp
#include <millrace/run/session_options.hpp>

void show() {
EXAMPLE
}
