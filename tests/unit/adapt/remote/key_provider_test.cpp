#include <millrace/adapt/remote/store/key_provider.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace mr = millrace;
using mr::detail::found_keys;
using mr::detail::key_provider;

namespace {

/// Finds key after key, each with the same life; or fails.
struct many_keys {
  std::int64_t now = 1'000, life = 3'600;
  int found = 0, asked = 0;
  bool fails = false, same = false;

  key_provider provider() {
    return key_provider(
        [this] {
          ++asked;
          if (fails) throw mr::io_error("nobody answers", "Try again");
          if (!same || found == 0) ++found;
          return found_keys{.keys = {.access_key_id = std::to_string(found), .expires_seconds = now + life},
                            .origin = "test"};
        },
        [this] { return now; });
  }
};

}  // namespace

TEST_CASE("keys are looked for once, and again five minutes before they expire") {
  many_keys all;
  key_provider keys = all.provider();
  CHECK(all.asked == 0);
  CHECK(keys.get().keys.access_key_id == "1");
  all.now += 3'299;
  CHECK(keys.get().keys.access_key_id == "1");
  all.now += 1;
  CHECK(keys.get().keys.access_key_id == "2");
  CHECK(all.asked == 2);
}

TEST_CASE("keys that never expire are kept") {
  many_keys all;
  all.life = mr::detail::signing_keys::never - all.now;
  key_provider keys = all.provider();
  keys.get();
  all.now += 1'000'000'000;
  CHECK(keys.get().keys.access_key_id == "1");
}

TEST_CASE("a renewal that fails is tried again each minute, until the keys have expired") {
  many_keys all;
  key_provider keys = all.provider();
  keys.get();
  all.fails = true;
  all.now += 3'301;
  for (int i = 0; i < 10; ++i) CHECK(keys.get().keys.access_key_id == "1");
  CHECK(all.asked == 2);
  all.now += 60;
  CHECK(keys.get().keys.access_key_id == "1");
  CHECK(all.asked == 3);
  all.now += 239;
  CHECK_THROWS_AS(keys.get(), mr::io_error);
  all.fails = false;
  all.now += key_provider::failure_seconds;
  CHECK(keys.get().keys.access_key_id == "2");
}

TEST_CASE("a failure is told to all that ask within five seconds") {
  many_keys all;
  all.fails = true;
  key_provider keys = all.provider();
  for (int i = 0; i < 10; ++i) CHECK_THROWS_AS(keys.get(), mr::io_error);
  CHECK(all.asked == 1);
  all.now += 5;
  CHECK_THROWS_AS(keys.get(), mr::io_error);
  CHECK(all.asked == 2);
}

TEST_CASE("keys that live shorter than the margin are not looked for at every request") {
  many_keys all;
  all.life = 120;
  key_provider keys = all.provider();
  for (int i = 0; i < 10; ++i) keys.get();
  CHECK(all.asked == 1);
  all.now += 61;
  CHECK(keys.get().keys.access_key_id == "2");
}

TEST_CASE("refused keys are renewed once") {
  many_keys all;
  key_provider keys = all.provider();
  const auto first = keys.get().keys;
  CHECK(keys.renew(first));
  CHECK(keys.get().keys.access_key_id == "2");
  CHECK(all.asked == 2);
  CHECK(keys.renew(first));   // another request was sent with the old ones
  CHECK(all.asked == 2);
  CHECK(!keys.renew(keys.get().keys));
  CHECK(all.asked == 2);
  all.now += 60;
  all.same = true;
  all.life -= 60;
  CHECK(!keys.renew(keys.get().keys));
  CHECK(all.asked == 3);
  all.now += 60;
  all.fails = true;
  CHECK(!keys.renew(keys.get().keys));
}

TEST_CASE("one thread looks for keys while the others wait") {
  std::atomic<int> asked = 0;
  key_provider keys(
      [&] {
        ++asked;
        return found_keys{.keys = {.access_key_id = "1"}, .origin = "test"};
      },
      [] { return std::int64_t{1}; });
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) good += keys.get().keys.access_key_id == "1";
    });
  for (auto& t : threads) t.join();
  CHECK(asked == 1);
  CHECK(good == 800);
}
