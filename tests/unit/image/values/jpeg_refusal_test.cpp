#include <millrace/image/values/jpeg_refusal.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace mr = millrace;
using mr::jpeg_refusal;

TEST_CASE("each reason has its name, and its event has the same one") {
  for (const auto& [why, name] :
       {std::pair{jpeg_refusal::none, "none"}, std::pair{jpeg_refusal::not_asked, "as requested"},
        std::pair{jpeg_refusal::scaled, "size"}, std::pair{jpeg_refusal::machine, "processor"},
        std::pair{jpeg_refusal::not_a_jpeg, "not a JPEG"}, std::pair{jpeg_refusal::process, "arithmetic or lossless"},
        std::pair{jpeg_refusal::precision, "precision"}, std::pair{jpeg_refusal::components, "components"},
        std::pair{jpeg_refusal::sampling, "sampling"}, std::pair{jpeg_refusal::several_scans, "several scans"},
        std::pair{jpeg_refusal::colors, "color space"}, std::pair{jpeg_refusal::unusual_header, "unusual header"},
        std::pair{jpeg_refusal::tables, "tables"}, std::pair{jpeg_refusal::damaged, "damaged"},
        std::pair{jpeg_refusal::wild_values, "extreme values"}, std::pair{jpeg_refusal::progressive, "progressive"},
        std::pair{jpeg_refusal::unrefined, "progressive, scans omitted"},
        std::pair{jpeg_refusal::limits, "progressive, beyond a limit"}}) {
    CHECK(std::string(refusal_name(why)) == name);
    CHECK(std::string(text_of(mr::detail::event_of(why))) == "JPEGs by libjpeg: " + std::string(name));
    CHECK(libjpeg_reason(mr::detail::event_of(why)) == std::string(name));
  }
}
