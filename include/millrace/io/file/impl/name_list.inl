// Definitions for name_list.hpp.
#pragma once

#include <millrace/io/file/name_list.hpp>

#include <millrace/item/owner.hpp>

#include <algorithm>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::string name_list::operator[](std::size_t number) const { return std::string(view(number)); }

MILLRACE_RARE std::vector<std::string> name_list::strings() const {
  std::vector<std::string> names;
  names.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) names.emplace_back(view(i));
  return names;
}

MILLRACE_RARE name_list::name_list(const std::vector<std::string>& names) : name_list(names.data(), names.size()) {}

MILLRACE_RARE name_list::name_list(std::initializer_list<std::string> names) : name_list(names.begin(), names.size()) {}

MILLRACE_RARE name_list::name_list(const std::string* begin, std::size_t size) {
  auto all = make_shared_object<names>();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < size; ++i) bytes += begin[i].size();
  all->text.reserve(bytes);
  all->ends.reserve(size);
  for (std::size_t i = 0; i < size; ++i) all->ends.push_back(all->text.append(begin[i]).size());
  all_ = std::move(all);
}

MILLRACE_RARE std::string_view name_list::common_folder() const noexcept {
  if (size() == 0) return {};
  std::string_view common = view(0);
  for (std::size_t i = 1; i < size(); ++i) {
    const std::string_view name = view(i);
    common = common.substr(
        0, static_cast<std::size_t>(std::mismatch(common.begin(), common.end(), name.begin(), name.end()).first -
                                    common.begin()));
  }
  return common.substr(0, common.rfind('/') + 1);   // without a slash, npos + 1 is 0
}

}}}   // namespace millrace::detail
