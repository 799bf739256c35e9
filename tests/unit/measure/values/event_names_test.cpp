#include <millrace/measure/values/event_names.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>

namespace mr = millrace;
using mr::detail::event_name;

TEST_CASE("each event has its text, which no other event has") {
  for (const auto& [name, text] :
       {std::pair{event_name::own_together, "JPEGs by the built-in decoder, several at once"},
        std::pair{event_name::own_alone, "JPEGs by the built-in decoder, alone"},
        std::pair{event_name::smaller, "JPEGs decoded smaller"},
        std::pair{event_name::by_entries, "JPEG crops accelerated by entry points"},
        std::pair{event_name::by_restarts, "JPEG crops accelerated by restart markers"},
        std::pair{event_name::entries_refused, "JPEGs with entry points of another file"},
        std::pair{event_name::shared, "images rendered from the planes of another image"},
        std::pair{event_name::progressive, "progressive JPEGs"},
        std::pair{event_name::damaged, "damaged JPEGs accepted"},
        std::pair{event_name::warnings, "warnings of libjpeg"},
        std::pair{event_name::bytes, "bytes of JPEGs"},
        std::pair{event_name::pixels, "pixels of JPEGs"},
        std::pair{event_name::fields_with_entries, "fields read with entry points"},
        std::pair{event_name::fields_refused, "fields with wrong or damaged entry points"}}) {
    CHECK(std::string(mr::detail::text_of(name)) == text);
    CHECK(mr::detail::libjpeg_reason(name) == nullptr);
  }
  for (std::size_t i = 0; i < mr::detail::event_texts.size(); ++i)
    CHECK(static_cast<std::size_t>(mr::detail::event_of_text(mr::detail::event_texts[i])) == i);
}

TEST_CASE("another text is none of the library's own events") {
  CHECK(mr::detail::event_of_text("repaired frames") == event_name::none);
  CHECK(mr::detail::event_of_text("") == event_name::none);
  CHECK(mr::detail::event_of_text("JPEGs by libjpeg: ") == event_name::none);
  CHECK(mr::detail::libjpeg_reason(event_name::none) == nullptr);
}
