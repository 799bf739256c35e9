#include "../../thorough.hpp"

#include <millrace/base/random.hpp>
#include <millrace/item/position.hpp>

#include <doctest/doctest.h>

#include <string>

namespace mr = millrace;

namespace {

const mr::position usual{.seed = 7,
                         .epoch = 3,
                         .next_position = 640'000,
                         .lanes = 48,
                         .window = 8'192,
                         .global_batch = 256,
                         .data_set = 0x0123456789abcdef,
                         .digest = 0xfedcba9876543210};
const mr::position without_index{.version = mr::position::replay_version,
                                 .seed = 1'234'567'890'123'456'789,
                                 .epoch = 89,
                                 .next_position = 1'280'000,
                                 .lanes = 1,
                                 .window = 8'192,
                                 .global_batch = 1'024,
                                 .data_set = 0x0123456789abcdef,
                                 .step = 112'500,
                                 .replay = {.pass = 89, .ordinal = 1'279'999, .rows = 1, .shard = 1'280,
                                            .first = 1'279'000},
                                 .times = 0x00c0ffee};

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const mr::error& e) {
    return e.message();
  }
  return "no error";
}

/// The parser's message, without the words that are the same each time.
std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(mr::parse_position(text));
  } catch (const mr::data_error& e) {
    const std::string always = "the resume text is not valid: ";
    const std::string& m = e.message();
    return m.starts_with(always) ? m.substr(always.size(), m.rfind("; got ") - always.size()) : m;
  }
  return "no error";
}

std::string with_checksum(std::string text) {
  text.resize(text.find(" crc32c="));
  return text + " crc32c=" + mr::detail::hex(mr::detail::checksum_of(text), 8);
}

std::string replaced(std::string text, const std::string& old_part, const std::string& new_part) {
  REQUIRE(text.find(old_part) != std::string::npos);
  return text.replace(text.find(old_part), old_part.size(), new_part);
}

}  // namespace

TEST_CASE("the text is pinned, and parsing returns the written position") {
  CHECK(mr::to_text(usual) ==
        "millrace version=6 seed=7 epoch=3 position=640000 lanes=48 window=8192 global_batch=256 epoch_batches=0 "
        "drop_last=1 data=0123456789abcdef digest=fedcba9876543210 crc32c=628d355e");
  mr::position of_version_1 = usual;
  of_version_1.version = mr::position::older_index_version;
  CHECK(mr::to_text(of_version_1) ==
        "millrace version=1 seed=7 epoch=3 position=640000 lanes=48 window=8192 global_batch=256 epoch_batches=0 "
        "drop_last=1 data=0123456789abcdef digest=fedcba9876543210 crc32c=1e92c257");
  CHECK(mr::parse_position(mr::to_text(of_version_1)) == of_version_1);
  CHECK(mr::parse_position(mr::to_text(usual)) == usual);
  CHECK(mr::parse_position(mr::to_text(usual) + "\n") == usual);
  mr::rng random({.seed = 1});
  const auto number = [&] { return random.bits() >> random.below(64); };
  for (int i = 0; i < 5'000; ++i) {
    const mr::position p{.seed = number(),
                         .epoch = number(),
                         .next_position = number(),
                         .lanes = static_cast<std::uint32_t>(number()),
                         .window = number(),
                         .global_batch = number(),
                         .epoch_batches = number(),
                         .drop_last = random.chance(0.5),
                         .data_set = number(),
                         .digest = number()};
    REQUIRE(mr::parse_position(mr::to_text(p)) == p);
  }
}

TEST_CASE("without an index the text says where reading begins again, also below 300 bytes") {
  CHECK(mr::to_text(without_index) ==
        "millrace version=7 seed=1234567890123456789 epoch=89 position=1280000 lanes=1 window=8192 global_batch=1024 "
        "epoch_batches=0 drop_last=1 data=0123456789abcdef times=00c0ffee step=112500 pass=89 place=1279999 "
        "rows=1 part=1280 first=1279000 ranks=0 rank=0 crc32c=6262b7de");
  mr::position version_4 = without_index;
  version_4.version = mr::position::older_replay_version;
  CHECK(mr::to_text(version_4) ==
        "millrace version=4 seed=1234567890123456789 epoch=89 position=1280000 lanes=1 window=8192 global_batch=1024 "
        "epoch_batches=0 drop_last=1 data=0123456789abcdef times=00c0ffee step=112500 pass=89 place=1279999 "
        "rows=1 part=1280 first=1279000 ranks=0 rank=0 crc32c=c912f963");
  CHECK(mr::parse_position(mr::to_text(version_4)) == version_4);
  CHECK(mr::to_text(without_index).size() < 300);
  CHECK(mr::parse_position(mr::to_text(without_index)) == without_index);
  mr::position other = without_index;
  other.replay = {};
  other.step = 0;
  CHECK(message_of([&] { mr::detail::check_same(without_index, other); }) == "no error");
  other.ranks = 4;
  other.rank = 1;
  const auto refusal = [&] { return message_of([&] { mr::detail::check_same(without_index, other); }); };
  CHECK(refusal().ends_with(" was any number of ranks and is rank 1 of 4"));
  other.rank = 4;
  CHECK(refusal().ends_with(" was any number of ranks and is any of 4 ranks"));
  other = without_index;
  other.times = 1;
  CHECK(message_of([&] { mr::detail::check_same(without_index, other); }) == "no error");
}

TEST_CASE("a text of version 2 or 3 is read, and accepted as 4 or 5 if it has one lane") {
  const std::string text =
      "millrace version=2 seed=1234567890123456789 epoch=89 position=1280000 lanes=1 window=8192 global_batch=1024 "
      "epoch_batches=0 drop_last=1 data=0123456789abcdef digest=0000000000000000 step=112500 pass=89 place=1279999 "
      "rows=1 part=1280 first=1279000 ranks=0 rank=0 crc32c=d89de77d";
  const mr::position older = mr::parse_position(text);
  CHECK(mr::to_text(older) == text);
  CHECK(older.times == 0);
  mr::position version_4 = without_index;
  version_4.version = mr::position::older_replay_version;
  CHECK(message_of([&] { mr::detail::check_same(older, version_4); }) == "no error");
  mr::position packing = without_index;
  packing.version = mr::position::older_packing_version;
  CHECK(message_of([&] { mr::detail::check_same(older, packing); })
            .find("the order's version was 4 (without an index) and is 5 (without an index, packing)") !=
        std::string::npos);
  for (const std::uint32_t version : {2U, 3U}) {
    mr::position of_lanes = older, now = without_index;
    of_lanes.version = version;
    of_lanes.lanes = now.lanes = 24;
    now.version = version + 2;
    CHECK(message_of([&] { mr::detail::check_same(of_lanes, now); }) ==
          "this release cannot continue an older resume point that has several lanes: got version " +
              std::to_string(version) + " with 24 lanes, expected version " + std::to_string(version + 2));
  }
}

TEST_CASE("a run that packs records how many tokens precede the first row") {
  mr::position packing = without_index;
  packing.version = mr::position::packing_version;
  packing.replay.held = 2'048;
  const std::string text = mr::to_text(packing);
  CHECK(text.find("version=8 ") != std::string::npos);
  CHECK(text.find(" rank=0 held=2048 crc32c=") != std::string::npos);
  CHECK(text.size() < 300);
  CHECK(mr::parse_position(text) == packing);
  CHECK(message_of([&] { mr::detail::check_same(packing, without_index); }).find("8 (without an index, packing)") !=
        std::string::npos);
}

TEST_CASE("a run that packs records the limits of its rows, and a text without them fits any limits") {
  mr::position packing = without_index;
  packing.packing = {.row = 8'192, .open_rows = 64};
  const std::string text = mr::to_text(packing);
  CHECK(text.find(" packed_row=8192 open_rows=64 crc32c=") != std::string::npos);
  CHECK(text.size() < 300);
  CHECK(mr::parse_position(text) == packing);
  for (const char* wrong : {"open_rows=0", "open_rows=064", "open_rows=x"})
    CHECK(refusal_of(with_checksum(replaced(text, "open_rows=64", wrong))) ==
          std::string(wrong) + " is not a valid number for this field");
  mr::position other = packing;
  other.packing = {.row = 8'191, .open_rows = 63};
  const std::string refused = message_of([&] { mr::detail::check_same(packing, other); });
  CHECK(refused.find("the row of pack() (length or max_cost) was 8192 and is 8191; open_rows of pack_best_fit() was 64 "
                     "and is 63") != std::string::npos);
  CHECK(message_of([&] { mr::detail::check_same(packing, without_index); }).find("was 8192 and is none") !=
        std::string::npos);
  mr::detail::check_same(without_index, packing);
}

TEST_CASE("the run's mix_rows distance is written, in every version, and no other text has the field") {
  for (const mr::position& plain : {usual, without_index}) {
    mr::position mixes = plain;
    mixes.stride = 4;
    const std::string text = mr::to_text(mixes);
    CHECK(text.find(" stride=4 crc32c=") != std::string::npos);
    CHECK(text.size() < 300);
    CHECK(mr::parse_position(text) == mixes);
    CHECK(mr::parse_position(mr::to_text(plain)).stride == 0);
    CHECK_FALSE(mr::parse_position(text) == plain);
    for (const char* wrong : {"stride=0", "stride=04", "stride=4294967296", "stride=x"}) {
      CHECK(refusal_of(with_checksum(replaced(text, "stride=4", wrong))) ==
            std::string(wrong) + " is not a valid number for this field");
    }
  }
  mr::position both = usual;
  both.choice = 5;
  both.stride = 12;
  both.share = {.digest = both.digest, .ranks = 4};
  const std::string text = mr::to_text(both);
  CHECK(text.find(" choice=0000000000000005 stride=12 shares=4 crc32c=") != std::string::npos);
  CHECK(mr::parse_position(text) == both);
}

TEST_CASE("the longest text is below 300 bytes") {
  const std::uint64_t most = ~std::uint64_t{0};
  const mr::position p{.version = mr::position::index_version, .seed = most, .epoch = most, .next_position = most,
                       .lanes = ~std::uint32_t{0}, .window = most, .global_batch = most, .epoch_batches = most,
                       .data_set = most, .digest = most};
  CHECK(mr::to_text(p).size() < 300);
  mr::position one_share = p;   // of more epochs and ranks than there will be
  one_share.epoch = one_share.epoch_batches = 999'999'999'999;
  one_share.share = {.digest = most, .ranks = 99'999'999};
  CHECK(mr::to_text(one_share).size() < 300);
}

TEST_CASE("a digest that was not summed over the ranks is recognized by its text") {
  mr::position one = usual;
  one.share = {.digest = one.digest, .ranks = 4};
  const std::string text = mr::to_text(one);
  CHECK(text.find(" digest=fedcba9876543210 shares=4 crc32c=") != std::string::npos);
  CHECK(mr::parse_position(text) == one);
  CHECK(mr::parse_position(text).is_share());
  one.digest += 5;   // of the other ranks
  CHECK(mr::to_text(one) == mr::to_text([] {
    mr::position sum = usual;
    sum.digest += 5;
    return sum;
  }()));
  mr::position again = mr::parse_position(text);   // summed from the texts alone
  again.digest += 5;
  CHECK(mr::to_text(again) == mr::to_text(one));
}

TEST_CASE("shares of fewer than two ranks are not a resume point: to_text() never writes them") {
  const std::string text = mr::to_text(usual);
  for (const char* shares : {" shares=0", " shares=1"}) {
    const std::string before = text.substr(0, text.find(" crc32c=")) + shares;
    const std::string refusal = refusal_of(before + " crc32c=" + mr::detail::hex(mr::detail::checksum_of(before), 8));
    CHECK(refusal == std::string(shares + 1) + " is not a valid number for this field");
  }
}

TEST_CASE("every truncation is refused") {
  const std::string text = mr::to_text(usual);
  for (const std::string& full : {text, mr::to_text(without_index)})
    for (std::size_t n = 0; n < full.size(); ++n) CHECK_MESSAGE(refusal_of(full.substr(0, n)) != "no error", n);
  CHECK(refusal_of("") == "it does not begin with 'millrace'");
  CHECK(refusal_of(text.substr(0, 8)) == "it is truncated before version");
  CHECK(refusal_of(text.substr(0, text.find("window"))) == "it is truncated before window");
  CHECK(refusal_of(text.substr(0, text.find("dow="))) == "it is truncated before window");
  CHECK(refusal_of(text.substr(0, text.find("window=8192") + 9)) == "it is truncated before global_batch");
  CHECK(refusal_of(text.substr(0, text.size() - 1)) == "it is truncated in its checksum");
  CHECK(refusal_of(text.substr(0, text.find("crc32c"))) == "it is truncated in its checksum");
}

TEST_CASE("every changed byte is refused, in a value by the checksum") {
  const std::string text = mr::to_text(usual), replayed = mr::to_text(without_index);
  std::size_t by_checksum = 0;
  for (std::size_t at = 0; at < text.size() + replayed.size(); ++at)
    for (int byte = 0; byte < 256; byte += static_cast<int>(stride(7))) {
      const std::string& full = at < text.size() ? text : replayed;
      std::string changed = full;
      changed[at < text.size() ? at : at - text.size()] = static_cast<char>(byte);
      if (changed == full) continue;
      const std::string refusal = refusal_of(changed);
      REQUIRE_MESSAGE(refusal != "no error", changed);
      by_checksum += refusal == "its checksum is wrong: it was changed or damaged";
    }
  CHECK(by_checksum > 9 * 20);
  CHECK(refusal_of(replaced(text, "seed=7", "seed=8")) == "its checksum is wrong: it was changed or damaged");
  // Two bytes, or a complete value.
  CHECK(refusal_of(replaced(text, "position=640000", "position=046000")) != "no error");
  CHECK(refusal_of(replaced(text, "epoch=3", "epoch=30")) == "its checksum is wrong: it was changed or damaged");
}

TEST_CASE("values that the checksum accepts are still validated") {
  const std::string text = mr::to_text(usual);
  const auto with = [&](const char* what, const char* by) {
    return refusal_of(with_checksum(replaced(text, what, by)));
  };
  CHECK(with("seed=7", "seed=8") == "no error");
  CHECK(with("seed=7", "seed=07") == "seed=07 is not a valid number for this field");
  CHECK(with("seed=7", "seed=-7") == "seed=-7 is not a valid number for this field");
  CHECK(with("seed=7", "seed=") == "seed= is not a valid number for this field");
  CHECK(with("seed=7", "seed=18446744073709551616") ==
        "seed=18446744073709551616 is not a valid number for this field");
  CHECK(with("lanes=48", "lanes=4294967296") == "lanes=4294967296 is not a valid number for this field");
  CHECK(with("drop_last=1", "drop_last=2") == "drop_last=2 is not a valid number for this field");
  CHECK(with("data=0", "data=A") == "data=A123456789abcdef is not a valid number for this field");
  CHECK(with("data=0", "data=") == "data=123456789abcdef is not a valid number for this field");
  CHECK(with(" seed=7", "") == "'seed=' is missing before ' epoch=3 position=640000 lanes=48 window'");
  CHECK(with(" seed=7", " seed=7 seed=7") ==
        "'epoch=' is missing before ' seed=7 epoch=3 position=640000 lanes=48'");
  CHECK(with("seed=7", "seed=7\n") == "seed=7\\x0a is not a valid number for this field");
  CHECK(with("version=6", "version=9") ==
        "the resume text has version 9, and only versions 1 to 8 are supported");
  CHECK(refusal_of(text + " ") == "data follows its checksum");
  CHECK(refusal_of(text + "\n\n") == "data follows its checksum");
  CHECK(refusal_of(std::string(100'000, 'x')) == "it does not begin with 'millrace'");
}

TEST_CASE("a resume point of another run is refused by name, of another place in the same run it is not") {
  mr::position elsewhere = usual;
  elsewhere.epoch = 9;
  elsewhere.next_position = 1;
  elsewhere.digest = 5;
  CHECK(message_of([&] { mr::detail::check_same(usual, elsewhere); }) == "no error");
  const auto refusal = [](const auto& change) {
    mr::position other = usual;
    change(other);
    const std::string always = "the resume point belongs to another run: ";
    const std::string m = message_of([&] { mr::detail::check_same(usual, other); });
    return m.starts_with(always) ? m.substr(always.size()) : m;
  };
  CHECK(refusal([](auto& p) { p.data_set = 1; }) == "the data set was 0123456789abcdef and is 0000000000000001");
  CHECK(refusal([](auto& p) { p.seed = 8; }) == "the seed was 7 and is 8");
  CHECK(refusal([](auto& p) { p.window = 0; }) == "the shuffle window was 8192 and is none");
  CHECK(refusal([](auto& p) { p.lanes = 12; }) == "the number of lanes was 48 and is 12");
  CHECK(refusal([](auto& p) { p.global_batch = 512; }) == "the global batch was 256 and is 512");
  CHECK(refusal([](auto& p) { p.version = 4; }) == "the order's version was 6 and is 4 (without an index)");
  CHECK(refusal([](auto& p) { p.stride = 4; }) == "the stride of mixed rows was none and is 4");
  CHECK(refusal([](auto& p) { p.drop_last = false; }) ==
        "an epoch was one pass without a short last batch and is one pass with its short last batch");
  CHECK(refusal([](auto& p) { p.epoch_batches = 100; }) ==
        "an epoch was one pass without a short last batch and is 100 batches");
  CHECK(refusal([](auto& p) { p.epoch_batches = ~std::uint64_t{0}; }).ends_with("and is endless"));
  CHECK(refusal([](auto& p) {
          p.seed = 8;
          p.lanes = 12;
        }) == "the seed was 7 and is 8; the number of lanes was 48 and is 12");
}
