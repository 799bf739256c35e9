// ---- band_loops.hpp
bool example(const mr::detail::band_stream& first, const mr::detail::block_run& blocks, bool stored, bool refines) {
  struct {
    bool refines;
  } scan{refines};
  mr::detail::band_stream stream = first;
EXAMPLE
  return whole;
}

// ---- band_stream.hpp
mr::detail::jpeg_refusal example(const mr::detail::band_table& table, mr::detail::coefficient_set* sets,
                                 std::int16_t* pairs, std::uintptr_t first_bit, std::uintptr_t end) {
  using enum mr::detail::jpeg_refusal;
EXAMPLE
  return none;
}

// ---- band_table.hpp
#include <millrace/image/progressive/progressive_header.hpp>
mr::detail::jpeg_refusal example(const mr::detail::progressive_scan& scan, std::uint64_t window, unsigned k) {
  using enum mr::detail::jpeg_refusal;
EXAMPLE
  return value > static_cast<int>(k) ? none : damaged;
}

// ---- coefficient_set.hpp
std::uint64_t example() {
EXAMPLE
  return third + k;
}

// ---- coefficient_store.hpp
bool example(const mr::detail::scan_header& header, const mr::detail::mcu_region& region, std::size_t c,
             std::size_t row, std::size_t column, std::size_t from, std::size_t to) {
EXAMPLE
  return dc != nullptr && run.count > 0;
}

// ---- dc_scans.hpp
mr::detail::jpeg_refusal example(const mr::detail::scan_header& header, const mr::detail::progressive_scan& scan,
                                 const mr::detail::dc_scan::tables& codes, mr::detail::coefficient_store& store,
                                 std::uintptr_t bit, std::uintptr_t end_bit, std::size_t row) {
  using enum mr::detail::jpeg_refusal;
EXAMPLE
  return none;
}

// ---- progressive_decoder.hpp
#include <millrace/item/scratch.hpp>
void use(const mr::detail::jpeg_planes& planes);
void by_libjpeg(const mr::detail::jpeg_planes_request& ask, mr::detail::jpeg_refusal why);
void example(mr::scratch& scratch, const mr::detail::jpeg_planes_request& request) {
EXAMPLE
}

// ---- progressive_header.hpp
void decode(const mr::detail::progressive_scan& scan);
mr::detail::jpeg_refusal example(std::span<const std::uint8_t> file, mr::detail::scan_header& header,
                                 std::size_t behind_data) {
EXAMPLE
  return mr::detail::jpeg_refusal::none;
}

// ---- scan_data.hpp
#include <millrace/image/progressive/progressive_header.hpp>
mr::detail::jpeg_refusal example(std::span<const std::uint8_t> file, const mr::detail::progressive_scan& scan,
                                 mr::detail::byte_memory& memory) {
  using enum mr::detail::jpeg_refusal;
EXAMPLE
  return marker > 0 ? none : damaged;
}
