// ---- block_loops.hpp
void example(mr::detail::block_stream& stream, mr::detail::block_stream& other) {
EXAMPLE
}

// ---- block_stream.hpp
#include <millrace/image/jpeg/baseline/block_loops.hpp>
mr::jpeg_refusal example(const mr::detail::block_loops& loops, mr::detail::block_stream& other,
                                 std::uintptr_t first_bit, mr::detail::block_slot* slots, std::size_t count,
                                 bool stored, const mr::detail::stop_table& stop) {
  using enum mr::jpeg_refusal;
EXAMPLE
  return none;
}

// ---- coefficient_table.hpp
void example(const mr::detail::huffman_code& ac, mr::detail::coefficient_table& table, std::uint64_t window,
             std::int16_t* block, const std::uint8_t* order, unsigned k) {
EXAMPLE
}

// ---- component_tables.hpp
mr::jpeg_refusal example(const mr::detail::scan_component& component, std::uint64_t window) {
EXAMPLE 1
  return mr::jpeg_refusal::none;
}
void example(const mr::detail::huffman_code& ac, mr::detail::skip_table& table, std::uint64_t window, unsigned bits,
             unsigned k) {
EXAMPLE 2
}

// ---- dct_kernels.hpp
void example(std::int16_t* coefficients, const mr::detail::dequantiser& q, std::uint8_t* samples,
             std::size_t stride_bytes) {
EXAMPLE
}

// ---- entry_walk.hpp
#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>

void example(std::span<const std::byte> file, mr::detail::jpeg_plane_decoder& decoder) {
EXAMPLE
}

// ---- huffman_code.hpp
mr::jpeg_refusal example(const mr::detail::scan_component& component, std::uint64_t window) {
EXAMPLE
  return mr::jpeg_refusal::none;
}

// ---- inverse_dct.hpp
void example(const mr::detail::scan_component& component, std::int16_t* pair, std::uint8_t* samples,
             std::size_t stride_bytes) {
EXAMPLE 1
}

// ---- jpeg_entry.hpp
#include <millrace/image/jpeg/baseline/mcu_stream.hpp>

void example(mr::detail::mcu_stream& stream) {
EXAMPLE
}

// ---- jpeg_plane_decoder.hpp
void use(const mr::detail::jpeg_planes& planes);
void by_libjpeg(const mr::detail::jpeg_planes_request& request, mr::jpeg_refusal why);
void example(mr::scratch& scratch, const mr::detail::jpeg_planes_request& first,
             const mr::detail::jpeg_planes_request& second) {
EXAMPLE
}

// ---- jpeg_planes.hpp
#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
void example(const mr::detail::jpeg_planes_result& result, std::size_t row, std::size_t column) {
EXAMPLE
}

// ---- jpeg_refusal.hpp
#include <millrace/measure/values/event_counts.hpp>

#include <cstdio>

void show(mr::event_counts& events) {
EXAMPLE
}

// ---- mcu_stream.hpp
#include <millrace/image/jpeg/baseline/block_loops.hpp>

mr::jpeg_refusal example(std::span<const std::byte> bytes, mr::detail::component_table_store& store,
                                 const mr::detail::stop_table& stop, const mr::detail::block_loops& loops) {
  using enum mr::jpeg_refusal;
  const auto wild = wild_values;
EXAMPLE
  return mcus > 0 ? none : wild;
}

// ---- packed_entries.hpp
#include <millrace/image/jpeg/baseline/mcu_stream.hpp>

void example(const std::vector<mr::detail::jpeg_entry>& entries, mr::detail::mcu_stream& stream, std::size_t n,
             std::size_t h) {
EXAMPLE
}

// ---- plane_job.hpp
void example(const mr::detail::jpeg_planes_request& request, mr::detail::component_table_store& store) {
EXAMPLE
}

// ---- plane_region.hpp
void example(const mr::detail::scan_header& header, const mr::detail::jpeg_planes_request& request,
             mr::detail::unstuffed_memory& memory) {
EXAMPLE
}

// ---- scan_header.hpp
mr::jpeg_refusal example(std::span<const std::byte> bytes) {
EXAMPLE
  return mr::jpeg_refusal::none;
}

// ---- segment_slots.hpp
void example(const mr::detail::scan_header& header, const mr::detail::segment_slots::tables_of_components& tables,
             mr::detail::block_stream& stream, const mr::detail::stop_table& stop, std::size_t mcus) {
EXAMPLE
}

// ---- unstuffer.hpp
void example(std::span<const std::uint8_t> file, std::size_t scan_begin, mr::detail::unstuffed_memory& memory,
             const std::uint8_t* from, std::size_t bytes, unsigned number) {
EXAMPLE
}

// ---- jpeg_encoder.hpp
void example(const mr::image& pixels, const mr::image& gray_pixels) {
EXAMPLE
}

// ---- jpeg_entries.hpp
void example(std::span<const std::byte> file) {
EXAMPLE
}

// ---- jpeg_header.hpp
void example(std::span<const std::byte> bytes) {
EXAMPLE
}

// ---- jpeg_decoder.hpp
#include <millrace/image/resize/plane_resizer.hpp>
void example(std::span<const std::byte> bytes, mr::detail::plane_resizer& sink) {
EXAMPLE
}

// ---- jpeg_input.hpp
EXAMPLE

// ---- jpeg_output.hpp
EXAMPLE

// ---- jpeg_segments.hpp
#include <vector>
void example(std::span<const std::byte> file, std::vector<std::byte>& metadata) {
EXAMPLE
}

// ---- libjpeg.hpp
#include <millrace/image/jpeg/libjpeg/jpeg_segments.hpp>
void example() {
EXAMPLE
}

// ---- band_stream.hpp
#include <millrace/image/jpeg/progressive/progressive_header.hpp>
using enum mr::jpeg_refusal;
mr::jpeg_refusal example(const mr::detail::band_table& table, mr::detail::coefficient_set* sets,
                                 std::int16_t* pairs, std::uintptr_t first_bit, std::uintptr_t end) {
EXAMPLE 1
  return none;
}
void example() {
EXAMPLE 2
}
mr::jpeg_refusal example(const mr::detail::progressive_scan& scan, std::uint64_t window, unsigned k) {
EXAMPLE 3
  return none;
}

// ---- coefficient_store.hpp
bool example(const mr::detail::scan_header& header, const mr::detail::mcu_region& region, std::size_t c,
             std::size_t row, std::size_t column, std::size_t from, std::size_t to) {
EXAMPLE 1
  return dc != nullptr && run.count > 0;
}
mr::jpeg_refusal example(const mr::detail::scan_header& header, const mr::detail::progressive_scan& scan,
                         const mr::detail::dc_scan::tables& codes, mr::detail::coefficient_store& store,
                         std::uintptr_t bit, std::uintptr_t end_bit, std::size_t row) {
  using enum mr::jpeg_refusal;
EXAMPLE 2
  return none;
}

// ---- progressive_decoder.hpp
#include <millrace/item/scratch.hpp>
void use(const mr::detail::jpeg_planes& planes);
void by_libjpeg(const mr::detail::jpeg_planes_request& request, mr::jpeg_refusal why);
void example(mr::scratch& scratch, const mr::detail::jpeg_planes_request& request) {
EXAMPLE 1
}
void example(mr::detail::band_stream& stream, const mr::detail::block_run& blocks, bool stored,
             const mr::detail::progressive_scan& scan) {
EXAMPLE 2
}

// ---- progressive_header.hpp
void decode(const mr::detail::progressive_scan& scan);
mr::jpeg_refusal example(std::span<const std::uint8_t> file, mr::detail::scan_header& header,
                                 std::size_t data_end) {
EXAMPLE
  return mr::jpeg_refusal::none;
}
