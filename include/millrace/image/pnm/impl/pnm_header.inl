// Definitions for pnm_header.hpp.
#pragma once

#include <millrace/image/pnm/pnm_header.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

namespace pnm_headers {

class reader {
 public:
  explicit reader(std::span<const std::byte> file) noexcept : file_(file) {}

  char now() const noexcept { return at_ < file_.size() ? std::to_integer<char>(file_[at_]) : '\0'; }
  bool is_blank() const noexcept { return now() == ' ' || (now() >= '\t' && now() <= '\r'); }

  /// Reads blanks and comments, of which there must be at least one, then a number. Returns 0 unless it is in 1..65535.
  std::size_t number() noexcept {
    if (!is_blank() && now() != '#') return 0;
    for (bool comment = false; at_ < file_.size(); ++at_) {
      if (comment) comment = now() != '\n' && now() != '\r';
      else if (now() == '#') comment = true;
      else if (!is_blank()) break;
    }
    std::size_t number = 0;
    for (; now() >= '0' && now() <= '9'; ++at_) {
      number = 10 * number + static_cast<std::size_t>(now() - '0');
      if (number > 65'535) return 0;
    }
    return number;
  }

  std::size_t at() const noexcept { return at_; }

 private:
  std::span<const std::byte> file_;
  std::size_t at_ = 2;   // after "P5"
};

}  // namespace pnm_headers

MILLRACE_INLINE std::optional<pnm_header> read_pnm_header(std::span<const std::byte> file) noexcept {
  if (file.size() < 2 || file[0] != std::byte{'P'}) return std::nullopt;
  if (file[1] != std::byte{'5'} && file[1] != std::byte{'6'}) return std::nullopt;
  pnm_header h{.channels = file[1] == std::byte{'6'} ? 3U : 1U};
  pnm_headers::reader read(file);
  for (std::size_t* const number : {&h.width, &h.height, &h.largest})
    if ((*number = read.number()) == 0) return std::nullopt;
  if (!read.is_blank()) return std::nullopt;
  h.data_at = read.at() + 1;
  return h;
}

}}}  // namespace millrace::detail
