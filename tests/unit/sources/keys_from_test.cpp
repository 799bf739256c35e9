// Lists of keys in files: text, JSON lines, compressed, several, missing.
#include <millrace/sources/keys_from.hpp>

#include "../io/tar_bytes.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

TEST_CASE("a text has a key in each line, which applies to every shard") {
  const temporary_folder f;
  save(f / "a.txt", "n1/1\r\n\nn1/2 \n{\"key\": \"x\"}\nn1/1");
  const mr::key_list keys = mr::keys_from(f / "a.txt");
  CHECK(keys.size() == 3);
  CHECK(keys.contains("n1/1", "any.tar"));
  CHECK(keys.contains("n1/2 ", "any.tar"));
  CHECK(keys.contains("{\"key\": \"x\"}", "any.tar"));
  CHECK_FALSE(keys.contains("", "any.tar"));
  save(f / "bytes.txt", "\xff\xfe\n");
  CHECK(mr::keys_from(f / "bytes.txt").contains("\xff\xfe", "any.tar"));
}

TEST_CASE("JSON lines bind a key to the file name of its shard") {
  const temporary_folder f;
  save(f / "q.jsonl",
       "{\"shard\": \"/data/s-0.tar\", \"key\": \"a\", \"offset\": 512, \"reason\": {\"key\": \"inner\"}}\n"
       "{\"key\": \"\\u00e4\\ud83d\\ude00\\u0001\"}\n"
       "{\"key\": \"?\", \"key_hex\": \"ff00\", \"shard\": \"s-1.tar\"}\n");
  const mr::key_list keys = mr::keys_from(f / "q.jsonl");
  CHECK(keys.size() == 3);
  CHECK(keys.contains("a", "/elsewhere/s-0.tar"));
  CHECK_FALSE(keys.contains("a", "s-1.tar"));
  CHECK(keys.contains("\xc3\xa4\xf0\x9f\x98\x80\x01", "s-1.tar"));
  CHECK(keys.contains(std::string("\xff\0", 2), "s-1.tar"));
  CHECK_FALSE(keys.contains("inner", "s-0.tar"));
}

TEST_CASE("a note about a shard is left out, and names that are not UTF-8 are decoded from their digits") {
  const temporary_folder f;
  save(f / "q.jsonl",
       "{\"shard\": \"lost.tar\", \"key\": null, \"reason\": \"cut\"}\n"
       "{\"key\": null, \"shard\": \"lost.tar\", \"was\": {\"key\": \"inner\"}}\n"
       "{\"shard\": \"s-?.tar\", \"shard_hex\": \"732dff2e746172\", \"key\": \"a\"}\n"
       "{\"shard\": \"s.tar\", \"key\": null, \"key_hex\": \"ff\"}\n");
  const mr::key_list keys = mr::keys_from(f / "q.jsonl");
  CHECK(keys.size() == 2);
  CHECK_FALSE(keys.contains("inner", "lost.tar"));
  CHECK(keys.contains("a", "/data/s-\xff.tar"));
  CHECK_FALSE(keys.contains("a", "s-?.tar"));
  CHECK(keys.contains("\xff", "s.tar"));
}

TEST_CASE("the last line of a quarantine list that a kill cut off is ignored, and no other cut line is") {
  const temporary_folder f;
  const std::string entry = "{\"shard\": \"s.tar\", \"key\": \"a\"}\n",
                    last = "{\"shard\": \"s.tar\", \"key\": \"b}\"}";
  for (std::size_t cut = 0; cut <= last.size(); ++cut) {
    CAPTURE(cut);
    save(f / "q.jsonl", entry + last.substr(0, cut));
    CHECK(mr::keys_from(f / "q.jsonl").size() == (cut < last.size() ? 1 : 2));
  }
  save(f / "amid.jsonl", last.substr(0, 20) + "\n" + entry);
  CHECK_THROWS_WITH_AS(mr::keys_from(f / "amid.jsonl"), doctest::Contains("line 1"), mr::data_error);
  save(f / "ended.jsonl", entry + last.substr(0, 20) + "\n");
  CHECK_THROWS_WITH_AS(mr::keys_from(f / "ended.jsonl"), doctest::Contains("line 2"), mr::data_error);
  save(f / "other.jsonl", entry + "{\"key\": \"b");
  CHECK_THROWS_WITH_AS(mr::keys_from(f / "other.jsonl"), doctest::Contains("line 2"), mr::data_error);
}

TEST_CASE("several files, folders and compressed files are one list") {
  const temporary_folder f;
  save(f / "q-0.jsonl", "{\"key\": \"a\"}\n");
  save(f / "q-1.jsonl", "{\"key\": \"b\"}\n{\"key\": \"a\"}");
  save(f / "z.jsonl", "{\"key\": \"z\"}\n");
  REQUIRE(std::system(("gzip " + (f / "z.jsonl")).c_str()) == 0);
  CHECK(mr::keys_from(f / "q-*.jsonl").size() == 2);
  CHECK(mr::keys_from(f / "q-{0,1}.jsonl").size() == 2);
  CHECK(mr::keys_from(std::vector<std::string>{f / "q-0.jsonl", f / "z.jsonl.gz"}).contains("z", "s"));
  CHECK(mr::keys_from(f.path()).size() == 3);
}

TEST_CASE("a missing list is an error, or empty if that is allowed") {
  const temporary_folder f;
  CHECK_THROWS_WITH_AS((void)mr::keys_from(f / "q-*.jsonl"), doctest::Contains("no file matches"), mr::setup_error);
  CHECK(mr::keys_from(f / "q-*.jsonl", {.allow_missing = true}).empty());
  CHECK(mr::keys_from(f / "q-0.jsonl", {.allow_missing = true}).empty());
  save(f / "q-1.jsonl", "{\"key\": \"b\"}\n");
  CHECK(mr::keys_from((f / "q-{0..3}.jsonl") + "::" + (f / "p*.txt"), {.allow_missing = true}).size() == 1);
}

TEST_CASE("a line that has no key is an error that names file and line") {
  const temporary_folder f;
  for (const std::string bad : {"[", "{\"kei\": \"a\"}", "\"a\"", "{\"key\": 5}", "{\"key\": \"\"}",
                                "{\"key\": \"a\"} x", "{\"key_hex\": \"f\"}", "{\"key_hex\": \"fg\"}",
                                "{\"key\": null}", "{\"shard\": \"s\"}", "{\"shard\": \"s\", \"key\": \"\"}",
                                "{\"shard\": null, \"key\": null}",
                                "[{\"key\": \"a\"}]", "{\"shard\": {\"key\": \"b\"}, \"key\": \"a\"}",
                                "{\"shard\": 5, \"key\": \"a\"}", "{\"key\": \"a\", \"key_hex\": []}",
                                "{\"shard_hex\": \"0\", \"key\": \"a\"}", "{\"shard\": \"s\", \"key\": true}"}) {
    CAPTURE(bad);
    save(f / "q.jsonl", "{\"key\": \"good\"}\n" + bad + "\n");
    CHECK_THROWS_WITH_AS((void)mr::keys_from(f / "q.jsonl"), doctest::Contains("line 2"), mr::data_error);
  }
}
