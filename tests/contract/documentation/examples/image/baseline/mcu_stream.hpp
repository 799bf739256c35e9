#include <millrace/image/baseline/block_loops.hpp>

mr::detail::jpeg_refusal example(std::span<const std::byte> bytes, mr::detail::component_table_store& store,
                                 const mr::detail::stop_table& stop, const mr::detail::block_loops& loops) {
  using enum mr::detail::jpeg_refusal;
  const auto wild = wild_values;
EXAMPLE
  return mcus > 0 ? none : wild;
}
