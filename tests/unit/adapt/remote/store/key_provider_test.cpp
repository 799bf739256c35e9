#include <millrace/adapt/remote/store/object_access.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace mr = millrace;
using mr::detail::provided_keys;
using mr::detail::credential_provider;
using mr::detail::remedy;

namespace {

/// Provides key after key, each with the same lifetime; or fails.
struct many_keys {
  std::int64_t now = 1'000, life = 3'600;
  int generation = 0, requests = 0;
  bool fails = false, same = false;

  std::vector<std::string> lines;

  credential_provider provider() {
    return credential_provider(
        [this] {
          ++requests;
          if (fails) throw mr::io_error("nobody answers", "Try again");
          if (!same || generation == 0) ++generation;
          // The same keys, requested again, may have a later expiry.
          return provided_keys{.keys = {.access_key_id = std::to_string(generation), .expires_seconds = now + life},
                            .origin = "test"};
        },
        {.now_seconds = [this] { return now; },
         .search_options = {.notice = [this](const mr::notice& n) { lines.push_back(n.text); }}});
  }
};

}  // namespace

TEST_CASE("keys are requested once, and again five minutes before they expire") {
  many_keys all;
  credential_provider keys = all.provider();
  CHECK(all.requests == 0);
  CHECK(keys.get().keys.access_key_id == "1");
  all.now += 3'299;
  CHECK(keys.get().keys.access_key_id == "1");
  all.now += 1;
  CHECK(keys.get().keys.access_key_id == "2");
  CHECK(all.requests == 2);
}

TEST_CASE("keys that never expire are kept") {
  many_keys all;
  all.life = mr::detail::signing_keys::never - all.now;
  credential_provider keys = all.provider();
  keys.get();
  all.now += 1'000'000'000;
  CHECK(keys.get().keys.access_key_id == "1");
}

TEST_CASE("a failed renewal is retried each minute, until the keys have expired") {
  many_keys all;
  credential_provider keys = all.provider();
  keys.get();
  all.fails = true;
  all.now += 3'301;
  for (int i = 0; i < 10; ++i) CHECK(keys.get().keys.access_key_id == "1");
  CHECK(all.requests == 2);
  all.now += 60;
  CHECK(keys.get().keys.access_key_id == "1");
  CHECK(all.requests == 3);
  all.now += 239;
  CHECK_THROWS_AS(keys.get(), mr::detail::credentials_pending);
  all.fails = false;
  all.now += 1;
  CHECK(keys.get().keys.access_key_id == "2");
}

TEST_CASE("a failed first request is repeated after 1, 2 and 4 s, and its error reports that") {
  many_keys all;
  all.fails = true;
  credential_provider keys = all.provider();
  const std::int64_t begin = all.now;
  std::vector<std::int64_t> request_times;
  for (; all.now < begin + credential_provider::unproven_seconds; ++all.now) {
    const int before = all.requests;
    for (int i = 0; i < 10; ++i) CHECK_THROWS_AS(keys.get(), mr::detail::credentials_pending);
    if (all.requests != before) request_times.push_back(all.now - begin);
  }
  CHECK(request_times == std::vector<std::int64_t>{0, 1, 3});
  try {
    keys.get();
    FAIL("accepted");
  } catch (const mr::io_error& e) {
    CHECK(e.message() == "nobody answers; searched for the keys 4 times in 7 s");
  }
}

TEST_CASE("keys that appear a little later are used") {
  many_keys all;
  all.fails = true;
  credential_provider keys = all.provider();
  CHECK_THROWS_AS(keys.get(), mr::detail::credentials_pending);
  all.fails = false;
  CHECK_THROWS_AS(keys.get(), mr::detail::credentials_pending);   // not too early
  all.now += 1;
  CHECK(keys.get().keys.access_key_id == "1");
}

TEST_CASE("without any source of keys the error is immediate, but not after valid keys") {
  bool none = true;
  std::int64_t now = 1'000;
  credential_provider keys(
      [&] {
        if (none) throw mr::detail::no_credentials_error("keys are missing", "Set them");
        return provided_keys{.keys = {.access_key_id = "1", .expires_seconds = now + 3'600}, .origin = "test"};
      },
      {.now_seconds = [&] { return now; }});
  CHECK_THROWS_AS(keys.get(), mr::setup_error);
  none = false;
  keys.accepted(keys.get().keys);
  none = true;
  now += 3'600;
  CHECK_THROWS_AS(keys.get(), mr::detail::credentials_pending);
}

TEST_CASE("expired keys lead to the error of a failed request") {
  std::int64_t now = 1'000, expires = 900;
  credential_provider keys(
      [&] { return provided_keys{.keys = {.access_key_id = "1", .expires_seconds = expires}, .origin = "test"}; },
      {.now_seconds = [&] { return now; }});
  CHECK_THROWS_AS(keys.get(), mr::detail::credentials_pending);
  expires = 5'000;
  now += 1;
  CHECK(keys.get().keys.access_key_id == "1");
}

TEST_CASE("keys with a lifetime below the margin are not requested for every transfer") {
  many_keys all;
  all.life = 120;
  credential_provider keys = all.provider();
  for (int i = 0; i < 10; ++i) keys.get();
  CHECK(all.requests == 1);
  all.now += 61;
  CHECK(keys.get().keys.access_key_id == "2");
}

TEST_CASE("refused keys are replaced by others, whichever request was refused first") {
  many_keys all;
  credential_provider keys = all.provider();
  const auto first = keys.get().keys;
  CHECK(keys.refused(first).what == remedy::kind::at_once);
  CHECK(keys.get().keys.access_key_id == "2");
  CHECK(all.requests == 2);
  CHECK(keys.refused(first).what == remedy::kind::at_once);   // another request used the old ones
  CHECK(all.requests == 2);
}

TEST_CASE("keys that were accepted once are requested again as long as transfers are retried") {
  many_keys all;
  all.same = true;
  credential_provider keys = all.provider();
  const auto first = keys.get().keys;
  keys.accepted(first);
  const std::int64_t begin = all.now;
  std::vector<std::int64_t> request_times;
  for (; all.now < begin + 180; ++all.now) {
    if (all.now == begin + 20) all.fails = true;   // the file is only half-written
    const int before = all.requests;
    for (int i = 0; i < 10; ++i) {
      CHECK(keys.get().keys.access_key_id == "1");   // the server may accept them again
      const remedy next = keys.refused(first);
      CHECK(next.what == remedy::kind::later);
      CHECK(next.pause_seconds >= 1);
      CHECK(next.pause_seconds <= 16);
    }
    if (all.requests != before) request_times.push_back(all.now - begin);
  }
  CHECK(request_times == std::vector<std::int64_t>{0, 1, 3, 7, 15, 31, 47, 63, 79, 95, 111, 127, 143, 159, 175});
  const remedy last = keys.refused(first);
  CHECK(last.what == remedy::kind::none);
  CHECK(last.attempted == "; searched for other keys 15 times in 180 s, and the last search failed: nobody answers");
  REQUIRE(all.lines.size() == 3);   // one per minute
  CHECK(all.lines[0] ==
        "the server refuses the credentials from test. Millrace searches for new credentials for up to 180 s");
  CHECK(all.lines[2] ==
        "the server refuses the credentials from test: nobody answers. Millrace searches for new credentials "
        "for up to " +
            std::string("60 s"));
  all.fails = all.same = false;
  all.now += 11;
  CHECK(keys.get().keys.access_key_id == "2");   // a new run in the same process
}

TEST_CASE("keys that appear late or were half-written are used") {
  many_keys all;
  all.same = true;
  credential_provider keys = all.provider();
  const auto first = keys.get().keys;
  keys.accepted(first);
  all.fails = true;
  CHECK(keys.refused(first).what == remedy::kind::later);
  all.now += 100;
  all.fails = all.same = false;
  CHECK(keys.refused(first).what == remedy::kind::at_once);
  const auto second = keys.get().keys;
  CHECK(second.access_key_id == "2");
  CHECK(keys.refused(second).what == remedy::kind::later);   // a part of the secret was missing
  all.now += 16;
  CHECK(keys.refused(second).what == remedy::kind::at_once);
  keys.accepted(keys.get().keys);
  all.same = true;
  // A later refusal restarts the time limit.
  all.now += 1'000;
  CHECK(keys.refused(keys.get().keys).what == remedy::kind::later);
}

TEST_CASE("keys that were never accepted are abandoned soon, those of the environment at once") {
  many_keys all;
  all.same = true;
  credential_provider keys = all.provider();
  const auto first = keys.get().keys;
  CHECK(keys.refused(first).what == remedy::kind::later);
  all.now += 6;
  CHECK(keys.refused(first).what == remedy::kind::later);
  all.now += 1;
  CHECK(keys.refused(first).what == remedy::kind::none);
  credential_provider fixed(
      [] { return provided_keys{.keys = {.access_key_id = "1"}, .origin = "environment", .is_fixed = true}; },
      {.now_seconds = [&] { return all.now; }});
  CHECK(fixed.refused(fixed.get().keys).what == remedy::kind::none);
  credential_provider impatient([] { return provided_keys{.keys = {.access_key_id = "1"}, .origin = "test"}; },
                         {.now_seconds = [&] { return all.now; }, .search_options = {.retry_seconds = 0}});
  CHECK(impatient.refused(impatient.get().keys).what == remedy::kind::none);
}

TEST_CASE("one thread requests keys while the others wait") {
  std::atomic<int> requests = 0;
  credential_provider keys(
      [&] {
        ++requests;
        return provided_keys{.keys = {.access_key_id = "1"}, .origin = "test"};
      },
      {.now_seconds = [] { return std::int64_t{1}; }});
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) good += keys.get().keys.access_key_id == "1";
    });
  for (auto& t : threads) t.join();
  CHECK(requests == 1);
  CHECK(good == 800);
}
