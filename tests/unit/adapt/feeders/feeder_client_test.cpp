// A session with feeders that fail in every way delivers the batches of a session without feeders.
#include "../../../eventually.hpp"
#include "../../run/quiet_sessions.hpp"
#include "hostile_feeder.hpp"

#include <millrace/adapt/feeders.hpp>
#include <millrace/adapt/feeders/feeder_client.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/shuffle.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>

namespace mr = millrace;

namespace {

struct fed_number {
  std::int32_t number;
  double draw;
};

using fed_batches = std::vector<std::vector<std::pair<std::int32_t, double>>>;

/// Learns the text of the run, and computes no rows.
struct row_probe : mr::row_storage {
  void open(const mr::row_run& of) override { run = of; }
  std::size_t free_rows() override { return 0; }
  void read_rows(const mr::row_range&, mr::row_slots) override {}
  mr::row_run run{};
};

struct fed_result {
  fed_batches batches;
  std::string last_position;
};

/// Two passes over 430 shuffled numbers. After the first row, which defines the shapes, workers wait for `may_work`.
template <class Condition>
fed_result run_fed(int threads, const std::shared_ptr<mr::row_provider>& rows, Condition may_work,
                   std::uint64_t seed = 3) {
  std::atomic<int> calls{0};
  const auto prepare = [&](int n, mr::rng& random) {
    if (calls++ > 0 && threads > 0) CHECK(eventually(may_work));
    return fed_number{n, random.uniform()};
  };
  auto options = quiet(threads, 2);
  options.rows = rows;
  mr::session run{mr::from(numbers(430), {.seed = seed}) | mr::shuffle({.window = 100}) | mr::map(prepare) |
                      mr::batch<&fed_number::number, &fed_number::draw>({.size = 40, .drop_last = false}),
                  options};
  fed_result d;
  for (auto& b : run) {
    auto [number, draw] = b.columns();
    auto& batch = d.batches.emplace_back();
    for (std::size_t i = 0; i < b.size(); ++i) batch.emplace_back(number[i], draw[i]);
    d.last_position = mr::to_text(b.position());
  }
  return d;
}

/// A run without feeders, and the rows of its feeders.
struct reference_run {
  fed_result expected;
  std::string hello;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::byte>> rows{};

  explicit reference_run(std::uint64_t seed = 3) {
    const auto probe = std::make_shared<row_probe>();
    expected = run_fed(
        2, probe, [] { return true; }, seed);
    hello = mr::detail::hello_text(probe->run);
    for (std::size_t b = 0; b < expected.batches.size(); ++b)
      for (std::size_t i = 0; i < expected.batches[b].size(); ++i) {
        const auto [number, draw] = expected.batches[b][i];
        std::vector<std::byte>& row = rows[{b / 11, b % 11 * 40 + i}];
        const auto add = [&row](const auto& value) {
          const auto bytes = std::as_bytes(std::span(&value, 1));
          row.insert(row.end(), bytes.begin(), bytes.end());
        };
        add(number);
        add(draw);
      }
  }
  hostile_feeder::settings feeder(std::vector<feeder_fault> faults = {feeder_fault::none}) const {
    return {.hello = hello,
            .row =
                [this](auto epoch, auto position) {
      return rows.at({epoch, position});
            },
            .faults = std::move(faults)};
  }
  void check(const fed_result& got) const {
    CHECK(got.batches == expected.batches);
    CHECK(got.last_position == expected.last_position);   // with the digest
  }
};

const reference_run& fed_reference() {
  static const reference_run run;
  return run;
}

/// Collects notices of any thread.
struct notice_texts {
  std::mutex mutex{};
  std::vector<std::string> all{};

  mr::notice_function receiver() {
    return [this](const mr::notice& n) {
      const std::lock_guard lock(mutex);
      CHECK(n.kind == mr::notice_kind::rows);
      all.push_back(n.text);
    };
  }
  std::vector<std::string> texts() {
    const std::lock_guard lock(mutex);
    return all;
  }
  std::size_t count(std::string_view part) {
    const auto now = texts();
    return static_cast<std::size_t>(
        std::count_if(now.begin(), now.end(), [&](const auto& t) { return t.find(part) != std::string::npos; }));
  }
};

std::uint64_t fed_rows(const mr::feeder_storage& storage) {
  std::uint64_t rows = 0;
  for (const auto& s : storage.statistics()) rows += s.rows;
  return rows;
}

mr::feeder_options fast_options(std::vector<std::string> hosts, mr::notice_function notice = mr::quiet) {
  return {.hosts = std::move(hosts), .answer_limit = std::chrono::milliseconds(500), .notice = std::move(notice)};
}

}   // namespace

TEST_CASE("feeders do not change a run, whatever their faults and the number of workers") {
  using enum feeder_fault;
  const reference_run& reference = fed_reference();
  const std::array all{none,      reset,       flipped_bit, wrong_length, huge_length, short_answer, extra_row,
                       missing_row, status_503, status_429,  status_500,   silent,      slow_bytes,   garbage};
  for (const feeder_fault what : all) {
    CAPTURE(static_cast<int>(what));
    hostile_feeder bad(reference.feeder({what, none}));
    const auto storage = mr::feeders(fast_options({bad.host()}));
    reference.check(run_fed(static_cast<int>(what) % 3, storage, [&] { return bad.requests >= 2; }));
  }
  std::vector<feeder_fault> mixed(all.begin(), all.end());
  for (int trial = 0; trial < 5; ++trial) {
    hostile_feeder one(reference.feeder(mixed)), two(reference.feeder({reset, none, flipped_bit, slow_bytes}));
    const auto storage = mr::feeders(fast_options({one.host(), two.host()}));
    reference.check(run_fed(1 + trial % 2, storage, [&] { return one.requests + two.requests >= 4; }));
    CHECK(mr::to_text(storage->statistics()).find("feeder " + one.host() + " (127.0.0.1): ") == 0);
    std::rotate(mixed.begin(), mixed.begin() + 3, mixed.end());
  }
}

TEST_CASE("rows of feeders reach the batches, and a request has only the headers of a feeder") {
  const reference_run& reference = fed_reference();
  auto settings = reference.feeder();
  settings.token = "a-token";
  hostile_feeder one(settings);
  auto options = fast_options({one.host()});
  options.token = "a-token";
  const auto storage = mr::feeders(options);
  reference.check(run_fed(1, storage, [&] { return fed_rows(*storage) > 20; }));
  CHECK(one.header_names() == std::set<std::string>{"Host", "User-Agent", "Authorization"});
  const auto s = storage->statistics();
  REQUIRE(s.size() == 1);
  CHECK(s[0].workers == 2);
  CHECK(s[0].window >= 8);
  CHECK(s[0].rows > 20);
  CHECK(s[0].rows_per_second > 0);
  CHECK(s[0].wait_seconds > 0);
}

TEST_CASE("a feeder of another run, another version or another token is reported once, and the others compute rows") {
  const reference_run& reference = fed_reference();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string hello = reference.hello;
    hello.replace(hello.find(from), from.size(), to);
    return hostile_feeder::settings{.hello = hello};
  };
  hostile_feeder good(reference.feeder()), seed(changed(" seed=3", " seed=4")),
      old(changed("library=", "library=old ")), next(changed("protocol=1", "protocol=2")),
      strict({.hello = reference.hello, .token = "another"}), page({.hello = reference.hello, .status = 404});
  notice_texts notices;
  const std::vector<std::string> hosts{good.host(), seed.host(), old.host(), next.host(), strict.host(), page.host()};
  const auto storage = mr::feeders(fast_options(hosts, notices.receiver()));
  reference.check(run_fed(1, storage, [&] { return notices.texts().size() >= 5 && fed_rows(*storage) > 0; }));
  CHECK(notices.texts().size() == 5);
  CHECK(notices.count("the feeder " + seed.host() +
                      " (127.0.0.1) computes the rows of another run: got \"order=millrace "
                      "version=6 seed=4") == 1);
  CHECK(notices.count("expected \"order=millrace version=6 seed=3") == 1);
  CHECK(notices.count("the feeder " + old.host() +
                      " (127.0.0.1) computes the rows of another run: got \"library=old "
                      "millrace") == 1);
  CHECK(notices.count("the feeder " + next.host() +
                      " (127.0.0.1) computes the rows of another run: got \"protocol=2\", "
                      "expected \"protocol=1\"") == 1);
  CHECK(notices.count("the feeder " + strict.host() + " (127.0.0.1) refuses the token: got status 401") == 1);
  CHECK(notices.count("the feeder " + page.host() + " (127.0.0.1) answers status 404, expected 200") == 1);
}

TEST_CASE("without feeders the workers compute all rows, with one notice, and a feeder that starts later is used") {
  const reference_run& reference = fed_reference();
  int port = 0;
  { port = hostile_feeder(reference.feeder()).port(); }
  notice_texts notices;
  const auto storage = mr::feeders(fast_options({"127.0.0.1:" + std::to_string(port)}, notices.receiver()));
  auto settings = reference.feeder();
  settings.port = port;
  std::unique_ptr<hostile_feeder> late;
  reference.check(run_fed(1, storage, [&] {
    if (!late && notices.count("no feeder is left (127.0.0.1:") == 1) late = std::make_unique<hostile_feeder>(settings);
    return late && fed_rows(*storage) > 0;
  }));
  CHECK(notices.texts().size() == 1);
}

TEST_CASE("each address of a name is a feeder, and a name is resolved again") {
  const reference_run& reference = fed_reference();
  hostile_feeder first(reference.feeder());
  auto settings = reference.feeder();
  settings.port = first.port();
  settings.address = "127.0.0.2";
  hostile_feeder second(settings);
  std::atomic<int> searches{0};
  const auto resolve = [&](const mr::detail::feeder_host& host) -> std::vector<std::string> {
    CHECK(host.host == "feeders.svc");
    ++searches;
    if (second.requests == 0) return {"127.0.0.1", "127.0.0.2"};
    if (searches % 2 == 0) throw mr::io_error("no answer of the name server", "Wait");   // the addresses stay
    return {"127.0.0.2"};
  };
  notice_texts notices;
  const auto storage =
      std::make_shared<mr::detail::feeder_client>(fast_options({"feeders.svc:" + std::to_string(first.port())},
                                                               notices.receiver()),
                                                  mr::detail::feeder_lookup{.resolve = resolve,
                                                                            .period = std::chrono::milliseconds(20)});
  reference.check(run_fed(1, storage, [&] {
    const auto all = storage->statistics();
    return first.requests > 0 && second.requests > 0 && all.size() == 1 && all[0].address.ends_with(" (127.0.0.2)");
  }));
  CHECK(notices.count("no answer of the name server") == notices.texts().size());
  CHECK(notices.texts().size() <= 1);
}

TEST_CASE("a late request is sent to a second feeder") {
  const reference_run& reference = fed_reference();
  using enum feeder_fault;
  std::vector<feeder_fault> faults(64, none);
  faults[0] = silent;
  hostile_feeder slow(reference.feeder(faults));
  auto settings = reference.feeder();
  { settings.port = hostile_feeder(settings).port(); }
  std::unique_ptr<hostile_feeder> fast;   // starts after the request that is late
  auto options = fast_options({slow.host(), "127.0.0.1:" + std::to_string(settings.port)});
  options.answer_limit = std::chrono::seconds(60);
  options.hedge = {.share = 0.5, .least_wait = std::chrono::milliseconds(20)};
  const auto storage = mr::feeders(options);
  reference.check(run_fed(1, storage, [&] {
    if (!fast && slow.requests > 0) fast = std::make_unique<hostile_feeder>(settings);
    const auto all = storage->statistics();
    return std::any_of(all.begin(), all.end(), [](const auto& s) { return s.hedges_won > 0; });
  }));
}

TEST_CASE("a storage of feeders serves one run") {
  const reference_run& reference = fed_reference();
  hostile_feeder one(reference.feeder());
  const auto storage = mr::feeders(fast_options({one.host()}));
  reference.check(run_fed(1, storage, [] { return true; }));
  reference.check(run_fed(1, storage, [&] { return one.requests > 0; }));
  CHECK_THROWS_WITH_AS(run_fed(
                           1, storage, [] { return true; }, 4),
                       doctest::Contains("serves one run"), mr::setup_error);
}

TEST_CASE("hosts are expanded like lists of Slurm, and invalid options are refused") {
  const auto names = [](std::vector<std::string> hosts) {
    std::string all;
    for (const auto& h : mr::detail::expand_hosts(hosts)) all += h.scheme + "://" + h.name() + " ";
    return all;
  };
  CHECK(names({"node[01-03,7]:8717"}) == "http://node01:8717 http://node02:8717 http://node03:8717 http://node7:8717 ");
  CHECK(names({"r[1-2]n[08-10]:1"}) ==
        "http://r1n08:1 http://r1n09:1 http://r1n10:1 http://r2n08:1 http://r2n09:1 http://r2n10:1 ");
  CHECK(names({"https://feeders.svc:443", "[::1]:8717", "10.0.0.7:65535"}) ==
        "https://feeders.svc:443 http://[::1]:8717 http://10.0.0.7:65535 ");
  CHECK(names({"https://a[1-2],b:1", "c,d[7]:2"}) == "https://a1:1 https://a2:1 https://b:1 http://c:2 http://d7:2 ");
  for (const char* wrong :
       {"", "node", "node:", "node:0", "node:65536", ":8717", "node[1-:8717", "a/b:1", "node[1-]:8717", "node[]:8717",
        "a,b", "a:1,b:1", "a,:1", "x@node:1", "ftp://node:1", "::1:8717", "node[1-2]]:1"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH_AS(names({wrong}), doctest::Contains("feeder_options::hosts has an invalid host"),
                         mr::setup_error);
  }
  CHECK_THROWS_WITH_AS(names({"node[0-99][0-99]:1"}), doctest::Contains("more than 4096 names"), mr::setup_error);
  CHECK(mr::detail::resolve_host(mr::detail::expand_hosts({"127.0.0.1:1"})[0]) ==
        std::vector<std::string>{"127.0.0.1"});
  CHECK(mr::detail::resolve_host(mr::detail::expand_hosts({"[::1]:1"})[0]) == std::vector<std::string>{"::1"});
  CHECK_THROWS_WITH_AS(mr::detail::resolve_host(mr::detail::expand_hosts({"missing.invalid:1"})[0]),
                       doctest::Contains("the host missing.invalid:1 of a feeder cannot be resolved"), mr::io_error);
  CHECK_THROWS_WITH_AS(mr::feeders({}), doctest::Contains("hosts is empty"), mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::feeders({.hosts = {"a:1"}, .token = "a\r\nb"}), doctest::Contains("token is invalid"),
                       mr::setup_error);
}
