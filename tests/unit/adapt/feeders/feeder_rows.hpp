// Shared by the tests of feeders: a flow of numbered rows, and the row_maker of a flow.
#pragma once

#include "../../run/quiet_sessions.hpp"

#include <millrace/adapt/feed_rows.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/sources/from.hpp>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace feeder_rows {

namespace mr = millrace;

/// The row_maker of a flow.
template <class Flow>
std::unique_ptr<mr::detail::row_maker> maker_of(Flow flow, const mr::session_options& of, std::size_t workers = 1) {
  mr::detail::notice_outlet notices(mr::quiet);
  return std::make_unique<mr::detail::flow_row_maker<Flow>>(
      std::move(flow), mr::detail::described_feeder_run(of), workers, notices);
}

struct numbered_row {
  std::int32_t number;
  std::array<double, 3> draws;
  mr::ragged<std::uint16_t> ids;
  bool odd;
};

/// Every 50th number is damaged.
inline numbered_row row_of_number(int number, mr::rng& random) {
  if (number % 50 == 49) throw mr::data_error("number " + std::to_string(number) + " is damaged", "Repair it");
  const auto length = static_cast<std::size_t>(random.below(5));
  return {number, {random.uniform(), random.uniform(), double(number)},
          mr::ragged<std::uint16_t>(std::vector<std::uint16_t>(length, static_cast<std::uint16_t>(number)),
                                    {.max_length = 4, .padding = 9}),
          number % 2 == 1};
}

inline auto numbered_flow(std::size_t window, std::uint64_t seed = 3) {
  return mr::from(numbers(430), {.seed = seed}) | mr::shuffle({.window = window}) | mr::map(row_of_number) |
         mr::batch<&numbered_row::number, &numbered_row::draws, &numbered_row::ids, &numbered_row::odd>(
             {.size = 40, .drop_last = false});
}

}  // namespace feeder_rows
