// The file names of a source. One block of memory contains all characters and, for each name, 8 bytes.
//
//   const mr::detail::name_list names({"train-000.tar", "train-001.tar"});
//   names[1];                       // "train-001.tar" as a std::string, which is a copy
//   names.view(1);                  // the same name as a std::string_view
//
// Copies share the block. Errors: none. Threads: immutable; any thread. Lifetime: a view is valid as long as any copy
// of the list exists.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An immutable list of names.
class name_list {
 public:
  name_list(const std::vector<std::string>& names);   // NOLINT(*-explicit-*)
  name_list(std::initializer_list<std::string> names);

  /// Returns the number of names.
  std::size_t size() const noexcept { return all_->ends.size(); }
  /// Returns the memory use of all names, in bytes.
  std::size_t bytes() const noexcept { return all_->text.size() + size() * sizeof(std::size_t); }
  /// Returns a name.
  std::string operator[](std::size_t number) const;
  /// Returns a name without copying it.
  std::string_view view(std::size_t number) const noexcept {
    const std::size_t begin = number == 0 ? 0 : all_->ends[number - 1];
    return std::string_view(all_->text).substr(begin, all_->ends[number] - begin);
  }
  /// Returns all names.
  std::vector<std::string> strings() const;
  /// Returns the common folder of all names, with its last slash, or "" if there is none.
  std::string_view common_folder() const noexcept;

 private:
  struct names {
    std::string text{};
    std::vector<std::size_t> ends{};   // end of each name in the text
  };

  name_list(const std::string* begin, std::size_t size);

  std::shared_ptr<const names> all_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/name_list.inl>
#endif
