// The names of the files of a source, in one block of memory. A million names cost their characters and 8 bytes each.
//
//   const mr::detail::name_list names({"train-000.tar", "train-001.tar"});
//   names[1];                       // "train-001.tar" as a std::string
//   names.view(1);                  // without a copy
//
// Copies share the block. Errors: none. Threads: immutable; any thread. Lifetime: a view is valid as long as any copy
// of the list exists.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An immutable list of names.
class name_list {
 public:
  name_list(const std::vector<std::string>& names) : name_list(std::span(names)) {}   // NOLINT(*-explicit-*)
  name_list(std::initializer_list<std::string> names) : name_list(std::span(names.begin(), names.size())) {}

  /// Returns the number of names.
  std::size_t size() const noexcept { return all_->ends.size(); }
  /// Returns the bytes of memory of all names.
  std::size_t bytes() const noexcept { return all_->text.size() + size() * sizeof(std::size_t); }
  /// Returns a name.
  std::string operator[](std::size_t number) const { return std::string(view(number)); }
  /// Returns a name without copying it.
  std::string_view view(std::size_t number) const noexcept {
    const std::size_t begin = number == 0 ? 0 : all_->ends[number - 1];
    return std::string_view(all_->text).substr(begin, all_->ends[number] - begin);
  }
  /// Returns all names.
  std::vector<std::string> strings() const {
    std::vector<std::string> names;
    names.reserve(size());
    for (std::size_t i = 0; i < size(); ++i) names.emplace_back(view(i));
    return names;
  }

 private:
  struct names {
    std::string text{};
    std::vector<std::size_t> ends{};   // end of each name in the text
  };

  explicit name_list(std::span<const std::string> list) {
    auto all = std::make_shared<names>();
    std::size_t bytes = 0;
    for (const std::string& name : list) bytes += name.size();
    all->text.reserve(bytes);
    all->ends.reserve(list.size());
    for (const std::string& name : list) all->ends.push_back(all->text.append(name).size());
    all_ = std::move(all);
  }

  std::shared_ptr<const names> all_;
};

}}}  // namespace millrace::detail
