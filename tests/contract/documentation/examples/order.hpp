// ---- batch_numbers.hpp
void show() {
EXAMPLE
}

// ---- exact_order.hpp
#include <millrace/order/lane_cursor.hpp>

void show(const std::vector<std::uint64_t>& counts, const mr::world& r) {
EXAMPLE
}

// ---- lane_cursor.hpp
void read(std::uint64_t shard, std::uint64_t index);

void show(const mr::detail::exact_order& order, std::uint64_t resumed_at) {
EXAMPLE
}

// ---- mix_plan.hpp
void show(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
EXAMPLE 1
}
// block 2 is a part of a list
// block 3 is a part of a list
// block 4 is a part of a list

// ---- mix_schedule.hpp
#include <millrace/order/mix_schedule.hpp>

void show(const mr::detail::mix_rule& rule, const std::vector<std::uint64_t>& samples) {
EXAMPLE
}

// ---- shard_order.hpp
void show(std::uint64_t epoch, std::size_t k) {
EXAMPLE
}

// ---- shuffle_quality.hpp
void show(const mr::detail::exact_order& order, const mr::world& mine,
          const mr::detail::ordered_sample& planned) {
EXAMPLE
}

// ---- sliding_jitter.hpp
void show(std::uint64_t length, std::uint64_t (*key_of)(std::uint64_t)) {
EXAMPLE
}
