#include <millrace/measure/values/event_names.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>

namespace mr = millrace;
using mr::detail::event_name;

TEST_CASE("each event has its text, which no other event has") {
  for (const auto& [name, text] :
       {std::pair{event_name::own_together, "JPEGs by the own decoder, several at once"},
        std::pair{event_name::own_alone, "JPEGs by the own decoder, alone"},
        std::pair{event_name::smaller, "JPEGs decoded smaller"},
        std::pair{event_name::by_entries, "JPEGs whose entry points left out what no crop needs"},
        std::pair{event_name::by_restarts, "JPEGs whose restart markers left out what no crop needs"},
        std::pair{event_name::entries_refused, "JPEGs with entry points of another file"},
        std::pair{event_name::shared, "pictures made of the planes of another one"},
        std::pair{event_name::progressive, "progressive JPEGs"},
        std::pair{event_name::damaged, "damaged JPEGs accepted"},
        std::pair{event_name::warnings, "warnings of libjpeg"},
        std::pair{event_name::bytes, "bytes of JPEGs"},
        std::pair{event_name::pixels, "pixels of JPEGs"},
        std::pair{event_name::fields_with_entries, "fields read with entry points"},
        std::pair{event_name::fields_refused, "fields whose entry points are not theirs, or damaged"}}) {
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
