// Definitions for any_picture.hpp.
#pragma once

#include <millrace/image/any_picture.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/pnm/pnm.hpp>
#include <millrace/item/record.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE picture any_picture(bytes data, const any_picture_options& options) {
  if (options.also && options.also->takes(data)) return options.also->read(std::move(data), options.jpeg);
  if (detail::is_pnm(data)) return pnm(std::move(data), {.limits = options.jpeg.limits});
  if (detail::is_png(data))
    return png(std::move(data), {.apply_orientation = options.jpeg.apply_orientation, .limits = options.jpeg.limits});
  const std::string_view text = data.text();
  if (text.size() >= 3 && text.starts_with("\xff\xd8")) return jpeg(std::move(data), options.jpeg);
  error_location at{.stage = "picture"};
  at.complete(detail::location_of(data));
  throw data_error(detail::other_format_message(data, "an image") + " (supported: JPEG, PNG, PNM" +
                       (options.also ? " , and the format of any_picture_options::also)" : ")"),
                   detail::hint_on_format(data).advice, at);
}

}}   // namespace millrace
