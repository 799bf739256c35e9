// The rows of a column of lists in a slot.
#include <millrace/image/any_picture.hpp>
#include <millrace/image/picture/picture_list.hpp>
#include <millrace/image/png/png_encoder.hpp>
#include <millrace/item/column/columns.hpp>

#include "slow_pictures.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace mr = millrace;

namespace {

struct listed {
  mr::picture_list pictures;
};

}  // namespace

TEST_CASE("rows of lists are rendered at their final places, and rows out of order are moved there") {
  constexpr std::size_t height = 12, width = 16, image_bytes = height * width * 3, most = 5;
  constexpr mr::picture_list_options options{.max_pictures = most, .size = {.width = width, .height = height}};
  mr::block_pool pool;
  const auto columns_of = [](const listed& first) {
    mr::detail::columns<&listed::pictures> all;
    all.fix_shapes(first, 4);
    return all;
  };
  std::vector<listed> items;
  std::vector<std::uint8_t> expected;
  for (const std::size_t count : {2, 0, 5, 3}) {
    std::vector<mr::picture> list;
    for (std::size_t i = 0; i < count; ++i) {
      list.push_back(mr::any_picture(pool.copy(mr::encode_png(slow::photo(height, width, 3, 10 * count + i)))));
      const mr::image pixels = list.back().pixels();
      expected.insert(expected.end(), pixels.span().begin(), pixels.span().end());
    }
    items.push_back({mr::picture_list(std::move(list), options)});
  }
  const auto columns = columns_of(items[0]);
  const auto lists = columns.new_lists();
  mr::scratch memory;
  for (const bool in_order : {true, false}) {
    std::vector<std::byte> slot(columns.batch_bytes());
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t first = in_order ? 2 * i : 2 - 2 * i;
      const listed* const two[] = {&items[first], &items[first + 1]};
      columns.place_lists(two, first, *lists);
      columns.render(two, slot.data(), first, memory, lists.get());
    }
    const auto starts_with_images = [&] {
      const auto* const values = slot.data() + slot.size() - mr::detail::aligned_column_bytes(4 * most * image_bytes);
      return std::memcmp(values, expected.data(), expected.size()) == 0;
    };
    CHECK(starts_with_images() == in_order);
    CHECK(columns.close(slot.data(), 4, lists.get()).padded_to[0] == 10);
    CHECK(starts_with_images());
    for (auto& column : *lists) column.clear();
  }
}
