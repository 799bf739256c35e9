#include <millrace/item/record_builder.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

void fill(std::span<std::byte> room, char c) { std::memset(room.data(), c, room.size()); }

}  // namespace

TEST_CASE("a record returns its fields, its key and its place") {
  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("train-0.tar", "dir/0001", 1536);
  fill(build.add_field("cls", 1), '7');
  fill(build.add_field("jpg", 100'000), 'x');
  fill(build.add_field("", 2), 'e');
  const mr::record r = build.finish();
  CHECK(r.key() == "dir/0001");
  CHECK(r.shard() == "train-0.tar");
  CHECK(r.offset_bytes() == 1536);
  CHECK(r.field_count() == 3);
  CHECK(r["cls"].text() == "7");
  CHECK(r["png;jpg"].name() == "jpg");
  CHECK(r["png;jpg"].size() == 100'000);
  CHECK(r[""].text() == "ee");
  CHECK(r.has("cls"));
  CHECK_FALSE(r.has("cl"));
  CHECK_FALSE(r.has("png;gif"));
  CHECK(mr::detail::location_of(r["jpg"]).key == "dir/0001");
}

TEST_CASE("a missing field is named together with the existing ones") {
  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("s.tar", "k", 0);
  fill(build.add_field("jpg", 3), 'x');
  const mr::record r = build.finish();
  try {
    (void)r["png;webp"];
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.message() == "the record has no field 'png;webp'; it has 'jpg'");
    CHECK(e.hint().find("choose samples by .having = \"png;webp\"") != std::string::npos);
    CHECK(e.where().shard == "s.tar");
    CHECK(e.where().key == "k");
  }
}

TEST_CASE("a missing field that ends the name of another one: the key ended at an earlier dot") {
  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("s.tar", "22", 0);
  fill(build.add_field("05.png", 3), 'x');
  fill(build.add_field("xjpg", 3), 'x');
  const mr::record r = build.finish();
  const auto hint_for = [&](std::string_view names) {
    try {
      (void)r[names];
    } catch (const mr::data_error& e) {
      return e.hint();
    }
    return std::string("no error");
  };
  CHECK(hint_for("webp;png").starts_with("A key ends at the first dot of the file name: name the field '05.png'"));
  CHECK(hint_for("jpg").starts_with("Name a field that every sample has"));
}

TEST_CASE("fields that match patterns are in the order of their numbers, of the shard, or of a list") {
  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("s.tar", "k", 0);
  const std::vector<std::string> stored{"10.jpg",  "2.jpg", "txt",    "jpg",    "01.jpg", "1.jpg", "3.png", "a9b2.jpg",
                                        "a9b10.jpg", "a.jpg", "2.PNG", "1.seg.jpg", "100000000000000000000000.jpg"};
  for (const std::string& name : stored) fill(build.add_field(name, 3), 'x');
  const mr::record r = build.finish();
  const auto names = [](const std::vector<mr::bytes>& fields) {
    std::vector<std::string> all;
    for (const mr::bytes& f : fields) all.emplace_back(f.name());
    return all;
  };
  using texts = std::vector<std::string>;
  CHECK(names(r.fields("*.jpg")) == texts{"01.jpg", "1.jpg", "1.seg.jpg", "2.jpg", "10.jpg",
                                          "100000000000000000000000.jpg", "a.jpg", "a9b2.jpg", "a9b10.jpg"});
  CHECK(names(r.fields("*.jpg", mr::record::order::shard)) ==
        texts{"10.jpg", "2.jpg", "01.jpg", "1.jpg", "a9b2.jpg", "a9b10.jpg", "a.jpg", "1.seg.jpg",
              "100000000000000000000000.jpg"});
  CHECK(names(r.fields("*.png;a9*.jpg;*.PNG")) == texts{"2.PNG", "3.png", "a9b2.jpg", "a9b10.jpg"});
  CHECK(names(r.fields("*0.jpg")) == texts{"10.jpg", "100000000000000000000000.jpg", "a9b10.jpg"});
  CHECK(names(r.fields("jpg;txt")) == texts{"jpg", "txt"});
  CHECK(r.fields("*.webp").empty());
  CHECK(r.fields("").empty());
  CHECK(r.fields("*").size() == stored.size());
  CHECK(mr::record{}.fields("*").empty());
  CHECK(r.fields("1*1.jpg").empty());   // the ends of a pattern do not overlap
  CHECK_THROWS_WITH_AS(r.fields("*.*"), doctest::Contains("a pattern of field names has two '*': got '*.*'"),
                       mr::setup_error);

  CHECK_THROWS_AS(r.fields("*;*.*"), mr::setup_error);   // although all fields match the first pattern
  CHECK_THROWS_WITH_AS(mr::record{}.fields("a;*b*;c"), doctest::Contains("got '*b*'"), mr::setup_error);
  CHECK(r.fields("*;*").size() == stored.size());
  CHECK(names(r.fields({"10.jpg", "3.webp;3.png", "10.jpg"})) == texts{"10.jpg", "3.png", "10.jpg"});
  CHECK(names(r.fields(texts{"txt", "2.jpg"})) == texts{"txt", "2.jpg"});
  CHECK(r.fields(texts{}).empty());
  CHECK_THROWS_WITH_AS(r.fields({"10.jpg", "11.jpg"}), doctest::Contains("the record has no field '11.jpg'"),
                       mr::data_error);
}

TEST_CASE("bytes outlive their record, the builder and the pool") {
  mr::bytes field;
  {
    mr::block_pool pool;
    mr::record_builder build(pool);
    for (int i = 0; i < 100; ++i) {
      build.begin("s.tar", "k" + std::to_string(i), 0);
      fill(build.add_field("txt", 50), static_cast<char>('a' + i % 26));
      const mr::record r = build.finish();
      if (i == 3) field = r["txt"];
    }
  }
  CHECK(field.text() == std::string(50, 'd'));
}

TEST_CASE("a retracted field leaves no trace, and growing keeps the earlier fields") {
  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("s.tar", "k", 0);
  fill(build.add_field("a", 10), 'a');
  fill(build.add_field("half", 5'000), 'h');
  build.drop_last_field();
  for (int i = 0; i < 40; ++i) fill(build.add_field("f" + std::to_string(i), 3'000), static_cast<char>('A' + i));
  const mr::record r = build.finish();
  CHECK(r.field_count() == 41);
  CHECK_FALSE(r.has("half"));
  CHECK(r["a"].text() == std::string(10, 'a'));
  for (int i = 0; i < 40; ++i)
    CHECK(r["f" + std::to_string(i)].text() == std::string(3'000, static_cast<char>('A' + i)));
}

TEST_CASE("blocks are recycled, and a size class wastes at most a quarter") {
  mr::block_pool pool;
  const void* first = pool.take(100'000).get();
  CHECK(pool.take(100'000).get() == first);
  CHECK(pool.take(70'000).get() == first);    // no further block: a slightly larger one is reused
  CHECK(pool.take(101'000).get() == first);
  CHECK(pool.take(50'000).get() != first);    // it would be less than half full
  CHECK(pool.take(150'000).get() != first);
  for (std::size_t n = 257; n < (1U << 22); n = n * 9 / 8 + 1) {
    const std::size_t capacity = mr::detail::bytes_of_class(mr::detail::size_class_of(n));
    CHECK(capacity >= n);
    CHECK(capacity <= n + n / 4 + 1);
  }
}

TEST_CASE("the entries of a field are delivered with its bytes, and not with a part or a copy of them") {
  mr::block_pool pool;
  mr::record_builder build(pool);
  const auto entries_of = [](const mr::bytes& field) {
    const auto entries = field.entries();
    return std::string(reinterpret_cast<const char*>(entries.data()), entries.size());
  };
  const auto as_entries = [](const std::string& text) { return mr::detail::bytes_of(text); };
  for (int round = 0; round < 3; ++round) {
    build.begin("s.tar", "k", 0);
    build.add_field("none", 0);
    build.set_entries(as_entries("a field of no bytes keeps none"));
    fill(build.add_field("jpg", 50'000), 'x');
    build.set_entries(as_entries("replaced"));
    build.set_entries(as_entries("of the jpg"));
    fill(build.add_field("txt", 3), 't');
    fill(build.add_field("bad", 7), 'b');
    build.set_entries(as_entries("of a field that is dropped"));
    build.drop_last_field();
    fill(build.add_field("big", 600'000), 'p');
    const std::string many(5'000, 'e');
    build.set_entries(as_entries(many));
    fill(build.add_field("cls", 1), '7');
    build.set_entries(as_entries("first"));
    build.set_entries({});
    const mr::record r = build.finish();
    CHECK(entries_of(r["jpg"]) == "of the jpg");
    CHECK(entries_of(r["big"]) == many);
    CHECK(r["big"].entries().data() > r["big"].data());
    CHECK(r["big"].text() == std::string(600'000, 'p'));
    for (const char* without : {"none", "txt", "cls"}) CHECK(r[without].entries().empty());
    CHECK(r["cls"].text() == "7");
    CHECK(r.field_count() == 5);

    const mr::bytes jpg = r["jpg"];
    const std::span<const std::byte> all = jpg;
    CHECK(mr::bytes(jpg.block(), all.first(49'999)).entries().empty());
    CHECK(mr::bytes(jpg.block(), all.subspan(1)).entries().empty());
    CHECK(mr::bytes::borrowed(all).entries().empty());
    CHECK(pool.copy(all).entries().empty());
    CHECK(mr::bytes().entries().empty());
  }
  // A reused block has no entries of an earlier record.
  build.begin("s.tar", "k", 0);
  fill(build.add_field("none", 1), 'n');
  fill(build.add_field("jpg", 50'000), 'x');
  fill(build.add_field("big", 600'000), 'x');
  const mr::record r = build.finish();
  CHECK(r["jpg"].entries().empty());
  CHECK(r["big"].entries().empty());
}

TEST_CASE("a joined record keeps its parts alive, with entry points, and recycles their blocks") {
  mr::block_pool pool, joins;
  mr::record_builder build(pool);
  const auto part = [&](const char* key, const char* field, std::string_view text, bool entries) {
    build.begin("shard", key, 512);
    const auto to = build.add_field(field, text.size());
    std::memcpy(to.data(), text.data(), text.size());
    if (entries) build.set_entries(mr::detail::bytes_of("entries"));
    mr::record r = build.finish();
    r.set_checksums(text.size());
    return r;
  };
  const std::vector<std::string> prefixes{"", "b."};
  mr::bytes field;
  for (int round = 0; round < 3; ++round) {
    std::vector<mr::record> parts{part("k", "x", "first", false), part("other", "y", "second", true), mr::record()};
    const std::size_t bytes_of_parts = parts[0].held_bytes() + parts[1].held_bytes();
    mr::record joined = mr::detail::record_join{.parts = parts, .prefixes = prefixes}.run(joins);
    // A joined record can be joined again.
    const std::vector<mr::record> again{joined, part("third", "z", "7", false)};
    parts.clear();
    CHECK(joined.key() == "k");
    CHECK(joined.shard() == "shard");
    CHECK(joined.offset_bytes() == 512);
    CHECK(joined.field_count() == 2);
    CHECK(joined["x"].text() == "first");
    CHECK(joined["b.y"].text() == "second");
    CHECK(joined["b.y"].entries().size() == 7);
    CHECK(joined["x"].entries().empty());
    CHECK(joined.fields("b.*").size() == 1);
    CHECK(joined.held_bytes() > bytes_of_parts);
    CHECK(joined.checksums() != 0);
    joined.prefetch_head();
    joined.prefetch_fields();
    CHECK(mr::detail::location_of(joined["b.y"]).key == "k");
    const mr::record all = mr::detail::record_join{.parts = again}.run(joins);
    joined = {};
    field = all["b.y"];
    CHECK(all["z"].as<int>() == 7);
    CHECK(field.entries().size() == 7);
  }
  CHECK(field.text() == "second");
  CHECK(field.name() == "b.y");
  const std::vector<mr::record> alone{part("k", "x", "1", false), mr::record()};
  CHECK(mr::detail::record_join{.parts = alone}.run(joins)["x"].data() == alone[0]["x"].data());
}
