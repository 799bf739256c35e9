// Definitions for world.hpp.
#pragma once

#include <millrace/item/world.hpp>

#include <cstdint>
#include <cstdlib>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_RARE std::string world::describe() const {
  std::string text = "rank " + std::to_string(rank) + " of " + std::to_string(size);
  if (*launcher != '\0')
    text += std::string(" (") + launcher + ", local rank " + std::to_string(local_rank) +
            (local_size > 0 ? " of " + std::to_string(local_size) : "") + ")";
  return text;
}

namespace detail {

MILLRACE_RARE std::size_t launcher_tasks_of_node(std::string_view list, std::size_t node) noexcept {
  const auto number = [&list] {
    std::size_t n = 0;
    for (; !list.empty() && list[0] >= '0' && list[0] <= '9' && n < 1 << 20; list.remove_prefix(1))
      n = 10 * n + static_cast<std::size_t>(list[0] - '0');
    return n;
  };
  const bool is_one = list.find_first_of(",(") == std::string_view::npos;   // the same number on each node
  while (!list.empty()) {
    const std::size_t tasks = number();
    std::size_t nodes = 1;
    if (list.starts_with("(x")) {
      list.remove_prefix(2);
      nodes = number();
      if (!list.starts_with(")")) return 0;
      list.remove_prefix(1);
    }
    if (node < nodes || is_one) return list.empty() || list[0] == ',' ? tasks : 0;
    node -= nodes;
    if (!list.starts_with(",")) return 0;
    list.remove_prefix(1);
  }
  return 0;
}

MILLRACE_RARE void throw_world_unset(const std::string& cause) {
  throw setup_error("session_options::world is not set" + cause,
                    "Set .world = mr::world_from_launcher() to share the samples among the ranks, or "
                    ".world = mr::single_process to deliver all samples in this process, for example in a "
                    "validation on one rank");
}

inline constexpr auto read_variable = [](const char* variable) -> const char* { return std::getenv(variable); };

MILLRACE_RARE world world_by_default() { return launcher_reader(read_variable).read_single(); }

MILLRACE_RARE std::size_t processes_of_machine(const world& mine) noexcept {
  std::size_t count = mine.local_size;
  try {
    if (count == 0) count = world_from_launcher().local_size;
  } catch (...) {
    // world_from_launcher() reports this error to callers that need the world.
  }
  return count > 1 ? count : 1;
}

}   // namespace detail

MILLRACE_RARE world world_from_launcher() { return detail::launcher_reader(detail::read_variable).read(); }

}}   // namespace millrace
