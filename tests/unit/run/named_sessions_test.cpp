// Sessions whose types are spelled out, and batches that are split into columns.
#include "../../temporary_folder.hpp"

#include <millrace/mix_rows.hpp>
#include <millrace/millrace.hpp>
#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

namespace mr = millrace;

namespace {

struct example {
  std::array<std::uint8_t, 4> pixels;
  std::int32_t label;
};

std::vector<int> numbers() {
  std::vector<int> all(24);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  return all;
}
example prepare(int n) {
  const auto byte = static_cast<std::uint8_t>(n);
  return {{byte, byte, byte, byte}, n};
}
const mr::session_options quiet{.epochs = 2, .threads = 2, .notice = mr::quiet};
constexpr mr::columns<&example::pixels, &example::label> both;

auto items() { return mr::from(numbers(), {.seed = 3}) | mr::shuffle({.window = 24}) | mr::map(prepare); }
auto flow() { return items() | mr::batch<&example::pixels, &example::label>({.size = 8}); }

using named = mr::session<&example::pixels, &example::label>;
using named_mix = mr::session<&example::pixels, &example::label, mr::label_b<&example::label>, mr::lambda>;

/// A user's class that owns a session.
class trainer {
 public:
  explicit trainer(const mr::session_options& options) : data_(flow(), options) {}

  std::vector<std::int32_t> labels() {
    std::vector<std::int32_t> all;
    for (auto& [pixels, label] : data_) {
      for (std::size_t i = 0; i < label.size(); ++i) {
        REQUIRE(pixels.data[4 * i + 3] == label.data[i]);
        all.push_back(label.data[i]);
      }
    }
    return all;
  }

 private:
  named data_;
};

template <class Session>
std::vector<std::int32_t> labels_of(Session& run) {
  std::vector<std::int32_t> all;
  for (auto& b : run)
    for (const std::int32_t label : b.template get<&example::label>().host()) all.push_back(label);
  return all;
}
named returned() { return named{flow(), quiet}; }
std::vector<std::int32_t> labels_of_named(named& run) { return labels_of(run); }

std::vector<std::int32_t> expected() {
  mr::session run{flow(), quiet};
  return labels_of(run);
}

}  // namespace

TEST_CASE("a session is a member, a result and a parameter") {
  CHECK(expected().size() == 48);
  CHECK(trainer(quiet).labels() == expected());
  named run = returned();
  CHECK(labels_of_named(run) == expected());
  std::unique_ptr<named> later = std::make_unique<named>(flow(), quiet);
  CHECK(labels_of_named(*later) == expected());
  std::optional<named> maybe;
  maybe.emplace(flow(), quiet);
  *maybe = named{flow(), quiet};
  CHECK(labels_of_named(*maybe) == expected());
}

TEST_CASE("a session deduces its columns, and those of batch<T> are all members") {
  static_assert(std::is_same_v<decltype(mr::session{flow(), quiet}), named>);
  mr::session all{items() | mr::batch<example>({.size = 8}), quiet};
  CHECK(labels_of(all) == expected());
  mr::session by_value{items() | mr::batch(both, {.size = 8}), quiet};
  static_assert(std::is_same_v<decltype(by_value), named>);
  CHECK(labels_of(by_value) == expected());
  named of_all{items() | mr::batch<example>({.size = 8}), quiet};
  CHECK(labels_of_named(of_all) == expected());
}

TEST_CASE("the batches of batch<T> have the names, shapes and bytes of batch<members>") {
  named by_members{flow(), quiet};
  mr::session by_type{items() | mr::batch<example>({.size = 8}), quiet};
  CHECK(by_type.description() == by_members.description());
  for (auto& b : by_type) {
    auto other = by_members.next();
    REQUIRE(b.position() == other.position());
    const auto pixels = b.get<&example::pixels>();
    const auto same = other.get<0>();
    static_assert(std::is_same_v<decltype(pixels), decltype(same)>);
    CHECK(std::string(pixels.name) == same.name);
    CHECK(pixels.shape == same.shape);
    CHECK(std::equal(pixels.data, pixels.data + pixels.size(), same.data));
  }
}

TEST_CASE("a batch is split into its columns") {
  mr::session run{flow(), quiet};
  using batch = decltype(run)::batch;
  static_assert(std::tuple_size_v<batch> == 2);
  for (auto& b : run) {
    auto& [pixels, label] = b;
    CHECK(pixels.data == b.get<&example::pixels>().data);
    CHECK(label.data == b.get<1>().data);
    const auto [copied_pixels, copied_label] = b.columns();
    CHECK(copied_pixels.data == pixels.data);
    CHECK(copied_label.shape == label.shape);
  }
  mr::session epochs{flow(), quiet};
  std::size_t rows = 0;
  for (std::uint64_t e = 0; e < 2; ++e)
    for (auto& [pixels, label] : epochs.epoch(e)) rows += pixels.shape[0] + label.shape[0];
  CHECK(rows == 96);
}

TEST_CASE("a session over mixed rows is named by four columns") {
  const auto mixed = [] { return flow() | mr::mixup(both, {.alpha = 0.4}); };
  static_assert(std::is_same_v<decltype(mr::session{mixed(), quiet}), named_mix>);
  named_mix run{mixed(), quiet};
  mr::session of_all{items() | mr::batch<example>({.size = 8}) |
                     mr::mixup<&example::pixels, &example::label>({.alpha = 0.4}), quiet};
  std::size_t mixed_rows = 0;
  for (auto& b : run) {
    auto& [pixels, label_a, label_b, lambda] = b;
    CHECK(label_a.data == b.label_a().data);
    CHECK(label_b.data == b.label_b().data);
    CHECK(lambda.data == b.lambda().data);
    auto other = of_all.next();
    const auto other_pixels = other.get<&example::pixels>();
    CHECK(std::equal(pixels.data, pixels.data + pixels.size(), other_pixels.data));
    CHECK(std::equal(lambda.data, lambda.data + lambda.size(), other.lambda().data));
    CHECK(std::equal(label_b.data, label_b.data + label_b.size(), other.label_b().data));
    const auto [pixels_again, label_a_again, label_b_again, lambda_again] = b.columns();
    CHECK(lambda_again.data == lambda.data);
    for (const float l : lambda.host()) mixed_rows += l != 1;
  }
  CHECK(mixed_rows > 20);
}

TEST_CASE("calls that need an index throw for other sources") {
  const temporary_folder folder;
  const std::string file = folder / "a.txt";
  std::ofstream(file) << "one\ntwo\nthree\n";
  struct length {
    std::int32_t bytes;
  };
  mr::session run{mr::lines(file) | mr::map([](std::string_view line) {
                    return length{static_cast<std::int32_t>(line.size())};
                  }) | mr::batch<length>({.size = 3}), quiet};
  CHECK_THROWS_WITH_AS(run.locate(0, 0), doctest::Contains("needs a source with an index"), mr::setup_error);
  CHECK_THROWS_WITH_AS(run.shuffle_quality(), doctest::Contains("needs one source with an index"), mr::setup_error);
  named indexed{flow(), quiet};
  CHECK(indexed.locate(0, 0).position == 0);
}
