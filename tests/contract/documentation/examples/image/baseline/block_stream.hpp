#include <millrace/image/baseline/block_loops.hpp>
mr::detail::jpeg_refusal example(const mr::detail::block_loops& loops, mr::detail::block_stream& other,
                                 std::uintptr_t first_bit, mr::detail::block_slot* slots, std::size_t count,
                                 bool stored, const mr::detail::stop_table& stop) {
  using enum mr::detail::jpeg_refusal;
EXAMPLE
  return none;
}
