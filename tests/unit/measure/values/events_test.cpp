#include <millrace/measure/values/event_counts.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mr = millrace;

TEST_CASE("counts of many threads add up, by text") {
  mr::event_counts counts;
  const std::string same = "one";   // another address
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        for (int n = 0; n < 1000; ++n) {
          counts.count(i % 2 ? "one" : same.c_str());
          counts.count("two", 3);
        }
      });
  }
  std::uint64_t one = 0, two = 0;
  for (const auto& c : counts.counts()) (std::string(c.what) == "one" ? one : two) += c.times;
  CHECK(counts.counts().size() == 2);
  CHECK(one == 4000);
  CHECK(two == 12000);
}

TEST_CASE("the library's own events share their counts with their texts, and are identified by their names") {
  mr::event_counts counts;
  const std::string text = mr::detail::text_of(mr::detail::event_name::warnings);   // another address
  counts.count(text.c_str(), 2);
  counts.count(text_of(mr::detail::event_name::warnings));
  counts.count("mine", 5);
  counts.count(text_of(mr::detail::event_name::own_alone), 3);
  const auto all = counts.counts();
  REQUIRE(all.size() == 3);
  const auto& [what, times] = all[1];   // as in programs of users
  CHECK(std::string(what) == "mine");
  CHECK(times == 5);
  CHECK(mr::detail::event_of_text(all[0].what) == mr::detail::event_name::warnings);
  CHECK(all[0].times == 3);
  CHECK(mr::detail::event_of_text(all[1].what) == mr::detail::event_name::none);
  CHECK(std::string(all[1].what) == "mine");
  CHECK(mr::detail::event_of_text(all[2].what) == mr::detail::event_name::own_alone);
  CHECK(std::string(all[2].what) == "JPEGs by the built-in decoder, alone");
}

TEST_CASE("names beyond the capacity are counted together") {
  mr::event_counts counts;
  std::vector<std::string> names;
  for (int i = 0; i < 54; ++i) names.push_back("name " + std::to_string(i));
  for (const auto& name : names) counts.count(name.c_str());
  const auto all = counts.counts();
  REQUIRE(all.size() == 49);
  CHECK(std::string(all[48].what) == "other");
  CHECK(all[48].times == 6);
}

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
