// Rows that another session of the same flow computes, with faults: the batches are those of a run without them.
#include "../../eventually.hpp"
#include "indexed_runs.hpp"

#include <millrace/adapt/feeders/row_storage.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/sources/from.hpp>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

namespace mr = millrace;
using indexed_runs::delivered;
using indexed_runs::run;
using indexed_runs::run_options;

namespace {

using row_bytes = std::vector<std::byte>;
using row_key = std::pair<std::uint64_t, std::uint64_t>;   // epoch and position
using known_rows = std::map<row_key, row_bytes>;

struct numbered {
  std::int32_t number;
  double draw;
};

template <class T>
void append(row_bytes& to, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// The rows of a run, by their position. Other sessions of the flow compute the same rows.
known_rows rows_of(const delivered& d, std::uint64_t steps_per_epoch, std::size_t batch_rows) {
  known_rows all;
  for (std::size_t b = 0; b < d.batches.size(); ++b)
    for (std::size_t i = 0; i < d.batches[b].size(); ++i) {
      row_bytes& row = all[{d.epochs[b], d.steps[b] % steps_per_epoch * batch_rows + i}];
      append(row, d.batches[b][i].first);
      append(row, d.batches[b][i].second);
    }
  return all;
}

enum class fault { none, late, repeated, wrong_length, wrong_checksum, exception, silent, partial, dropped };
constexpr std::array all_faults{fault::none,           fault::late,      fault::repeated, fault::wrong_length,
                                fault::wrong_checksum, fault::exception, fault::silent,   fault::partial,
                                fault::dropped};

/// Answers from another thread. Request n has fault n modulo the number of faults.
class faulty_rows : public mr::row_storage {
 public:
  faulty_rows(known_rows rows, std::vector<fault> faults) : rows_(std::move(rows)), faults_(std::move(faults)) {
    thread_ = std::thread([this] { answer(); });
  }
  ~faulty_rows() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
    for (request& r : late_) put_all(r, true);   // the session has ended
  }

  void open(const mr::row_run& run) override {
    CHECK(run.order.starts_with("millrace version=6 seed="));
    CHECK(run.max_row_bytes == sizeof(std::int32_t) + sizeof(double));
    opened = run;
  }
  std::size_t free_rows() override { return 10; }
  void read_rows(const mr::row_range& range, mr::row_slots slots) override {
    const std::lock_guard lock(mutex_);
    // After a late answer, the session waits longer. Therefore only one answer is late.
    const fault planned = faults_[requests % faults_.size()];
    const fault what = planned == fault::late && requests >= faults_.size() ? fault::none : planned;
    ++requests;
    if (what == fault::exception) throw mr::io_error("feeder 10.0.0.7 does not answer", "Restart it");
    queue_.push_back({range, what, std::move(slots)});
    changed_.notify_all();
  }

  mr::row_run opened{};
  std::atomic<std::size_t> requests{0}, stored{0}, wrong_results{0};

 private:
  struct request {
    mr::row_range range;
    fault what;
    mr::row_slots slots;
  };

  void answer() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      request r = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      for (auto it = late_.begin(); it != late_.end();) {
        if (it->slots.is_needed()) {
          ++it;
        } else {
          put_all(*it, true);   // the workers have computed the rows
          it = late_.erase(it);
        }
      }
      if (r.what == fault::late) late_.push_back(std::move(r));
      else if (r.what == fault::silent) silent_.push_back(std::move(r.slots));
      else if (r.what != fault::dropped) put_all(r, false);
      lock.lock();
    }
  }
  void put_all(request& r, bool late) {
    const std::size_t count = r.what == fault::partial ? r.range.count / 2 : r.range.count;
    for (std::size_t i = 0; i < count; ++i) {
      row_bytes bytes = rows_.at({r.range.epoch, r.range.first + i * r.range.step});
      if (r.what == fault::wrong_length && i % 3 == 0) bytes.resize(i % 2 == 0 ? bytes.size() + 1 : bytes.size() - 1);
      std::uint32_t crc = mr::crc32c(bytes);
      if (r.what == fault::wrong_checksum && i % 3 == 1) bytes[i % bytes.size()] ^= std::byte{4};
      const bool correct = crc == mr::crc32c(bytes) && bytes.size() == opened.max_row_bytes;
      const bool was_stored = r.slots.put(i, bytes, crc);
      stored += was_stored;
      if (was_stored && (late || !correct)) ++wrong_results;
      if (r.what == fault::repeated && r.slots.put(i, bytes, crc)) ++wrong_results;
    }
    if (r.slots.put(r.range.count, {}, 0)) ++wrong_results;   // beyond the request
  }

  const known_rows rows_;
  const std::vector<fault> faults_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<request> queue_;
  bool stopping_ = false;
  std::vector<request> late_;   // used by the thread
  std::vector<mr::row_slots> silent_;
  std::thread thread_;
};

void check_same(const delivered& a, const delivered& b) {
  CHECK(a.batches == b.batches);
  CHECK(a.positions == b.positions);   // with the digests
  CHECK(a.steps == b.steps);
  CHECK(a.epochs == b.epochs);
}

std::uint64_t count_of(const mr::run_stats& s, std::string_view what) {
  for (const mr::event_count& c : s.counts)
    if (c.what == what) return c.times;
  return 0;
}

/// Two passes over 430 shuffled numbers. The workers wait until the storage has three requests.
delivered run_numbers(int threads, const std::shared_ptr<faulty_rows>& storage) {
  std::atomic<int> calls{0};
  const auto prepare = [&](int n, mr::rng& random) {
    // The first call defines the shapes, before there are tickets.
    if (calls++ > 0 && threads > 0 && storage) CHECK(eventually([&] { return storage->requests >= 3; }));
    return numbered{n, random.uniform()};
  };
  auto options = quiet(threads, 2);
  options.rows = storage;
  mr::session run{mr::from(numbers(430), {.seed = 3}) | mr::shuffle({.window = 100}) | mr::map(prepare) |
                      mr::batch<&numbered::number, &numbered::draw>({.size = 40, .drop_last = false}),
                  options};
  delivered d;
  for (auto& b : run) {
    auto [number, draw] = b.columns();
    auto& rows = d.batches.emplace_back();
    for (std::size_t i = 0; i < b.size(); ++i) rows.emplace_back(number[i], draw[i]);
    d.positions.push_back(mr::to_text(b.position()));
    d.steps.push_back(b.step());
    d.epochs.push_back(b.epoch());
  }
  return d;
}

}  // namespace

TEST_CASE("rows from another session do not change a run, whatever their faults and the number of workers") {
  const delivered expected = run_numbers(2, nullptr);
  REQUIRE(expected.batches.size() == 22);
  REQUIRE(expected.batches[10].size() == 30);
  const known_rows rows = rows_of(expected, 11, 40);
  const auto compare = [&](int threads, std::vector<fault> faults) {
    CAPTURE(threads);
    const auto storage = std::make_shared<faulty_rows>(rows, std::move(faults));
    check_same(run_numbers(threads, storage), expected);
    CHECK(storage->wrong_results == 0);
    const std::string& columns = storage->opened.columns;   // begins with the namespace of this file
    CHECK(columns.ends_with("numbered::draw [40] f64"));
    CHECK(columns.find("numbered::number [40] i32, ") != std::string::npos);
    if (threads > 0) CHECK(storage->requests >= 3);
  };
  std::vector<fault> mixed(all_faults.begin(), all_faults.end());
  for (int threads = 0; threads <= 4; ++threads) {
    compare(threads, mixed);
    std::rotate(mixed.begin(), mixed.begin() + 3, mixed.end());
  }
  for (const fault what : all_faults) {
    CAPTURE(static_cast<int>(what));
    compare(2, {what});
    compare(0, {what});
  }
}

TEST_CASE("a run resumes with rows from another session at any batch, with any number of workers") {
  const temporary_folder folder;
  const std::string shards = indexed_runs::write_shards(folder) + "/s*.tar";
  run_options o{.epochs = 3};
  const delivered expected = run(shards, o);
  const known_rows rows = rows_of(expected, 8, 24);
  mr::rng random({.seed = 5});
  for (int trial = 0; trial < 8; ++trial) {
    const std::size_t first = 1 + random.below(expected.batches.size() - 1);
    CAPTURE(first);
    o.threads = trial % 5;
    o.resume = expected.positions[first - 1];
    o.storage_of_rows = std::make_shared<faulty_rows>(
        rows, std::vector<fault>{fault::none, all_faults[random.below(all_faults.size())], fault::none});
    const delivered rest = run(shards, o);
    const auto tail = [&](const auto& all) {
      return std::vector(all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
    };
    CHECK(rest.batches == tail(expected.batches));
    CHECK(rest.positions == tail(expected.positions));
  }
}

TEST_CASE("two ranks request rows, each at its positions") {
  const temporary_folder folder;
  const std::string shards = indexed_runs::write_shards(folder) + "/s*.tar";
  run_options o{.epochs = 2, .lanes = 2};
  const delivered expected = run(shards, o);
  const known_rows rows = rows_of(expected, 8, 24);
  o.storage_of_rows = std::make_shared<faulty_rows>(rows, std::vector<fault>{fault::none});
  CHECK(indexed_runs::run_all_ranks(shards, o, 2).batches == expected.batches);
}

TEST_CASE("the workers claim rows first, and do not compute the rows that the storage has stored") {
  const auto flow_of = [](auto prepare) {
    return mr::from(numbers(400)) | mr::map(std::move(prepare)) |
           mr::batch<&numbered::number, &numbered::draw>({.size = 40}) | mr::to_device({.device = mr::host_device()});
  };
  known_rows rows;
  for (std::uint64_t p = 0; p < 400; ++p) {
    append(rows[{0, p}], static_cast<std::int32_t>(p));
    append(rows[{0, p}], static_cast<double>(p) / 2);
  }
  const auto storage = std::make_shared<faulty_rows>(rows, std::vector<fault>{fault::none});
  std::atomic<std::size_t> calls{0};
  auto options = quiet(1);
  options.rows = storage;
  mr::session run{flow_of([&](int n) {
                    // The first call defines the shapes. The worker waits until the storage has stored rows.
                    if (calls++ > 0) REQUIRE(eventually([&] { return storage->stored > 20; }));
                    return numbered{n, n / 2.0};
                  }),
                  options};
  int next = 0;
  for (auto& [number, draw] : run)
    for (std::size_t i = 0; i < number.shape[0]; ++i, ++next) {
      CHECK(number[i] == next);
      CHECK(draw[i] == next / 2.0);
    }
  CHECK(next == 400);
  CHECK(storage->stored > 20);
  // The storage and the session count a row after the batch has it.
  CHECK(eventually([&] { return calls + storage->stored == 400; }));
  CHECK(eventually([&] { return count_of(run.stats(), "rows from the row storage") == storage->stored; }));
  CHECK(run.statistics().delivered_bytes >= 400 * (sizeof(std::int32_t) + sizeof(double)));
}

TEST_CASE("without workers, a session continues while its last missing row arrives") {
  known_rows rows;
  for (std::uint64_t p = 0; p < 4'000; ++p) {
    append(rows[{0, p}], static_cast<std::int32_t>(p));
    append(rows[{0, p}], 0.0);
  }
  const auto storage = std::make_shared<faulty_rows>(std::move(rows), std::vector<fault>{fault::none});
  auto options = quiet(0);
  options.rows = storage;
  mr::session run{mr::from(numbers(4'000)) | mr::map([](int n) { return numbered{n, 0}; }) |
                      mr::batch<&numbered::number, &numbered::draw>({.size = 2}),
                  options};
  int next = 0;
  for (auto& [number, draw] : run)
    for (std::size_t i = 0; i < number.shape[0]; ++i, ++next) REQUIRE(number[i] == next);
  CHECK(next == 4'000);
}

TEST_CASE("a storage that fails is reported once, and the workers compute all rows") {
  const auto storage = std::make_shared<faulty_rows>(known_rows(), std::vector<fault>{fault::exception});
  std::vector<std::string> texts;
  auto options = quiet(2);
  options.rows = storage;
  options.notice = [&](const mr::notice& n) {
    if (n.kind == mr::notice_kind::rows) texts.push_back(n.text);
  };
  std::atomic<int> calls{0};
  std::size_t rows = 0;
  mr::session run{mr::from(numbers(4'000)) | mr::map([&](int n) {
                    if (calls++ > 0) CHECK(eventually([&] { return storage->requests >= 3; }));
                    return numbered{n, 0};
                  }) | mr::batch<&numbered::number, &numbered::draw>({.size = 8}),
                  options};
  for (auto& b : run) rows += b.size();
  CHECK(rows == 4'000);
  CHECK(calls == 4'000);
  CHECK(eventually([&] { return count_of(run.stats(), "failed requests for rows") == storage->requests; }));
  CHECK(texts == std::vector<std::string>{"the row storage failed: feeder 10.0.0.7 does not answer. Restart it. The "
                                          "workers of this session compute the rows until the storage answers again. "
                                          "Further failures cause no notice"});
}

TEST_CASE("a run whose rows cannot be computed alone refuses a storage of rows, and a storage may refuse a run") {
  struct refusing : mr::row_storage {
    void open(const mr::row_run&) override {
      throw mr::setup_error("the feeder has another seed: got 8, expected 7", "Use the same seed");
    }
    std::size_t free_rows() override { return 0; }
    void read_rows(const mr::row_range&, mr::row_slots) override {}
  };
  auto options = quiet(1);
  options.rows = std::make_shared<refusing>();
  const auto prepare = mr::map([](int n) { return numbered{n, 0}; });
  const auto start = [&](auto flow) { mr::session run{std::move(flow), options}; };
  const mr::batch_options four{.size = 4};
  const auto to_batch = mr::batch<&numbered::number, &numbered::draw>(four);
  CHECK_THROWS_WITH_AS(start(mr::from(numbers(40)) | prepare | to_batch),
                       doctest::Contains("the feeder has another seed: got 8, expected 7"), mr::setup_error);
  const auto stream = [n = 0]() mutable { return n < 40 ? std::optional(n++) : std::nullopt; };
  CHECK_THROWS_WITH_AS(start(mr::from(stream) | prepare | to_batch),
                       doctest::Contains("got a streamed order"), mr::setup_error);
}

TEST_CASE("the bytes of a row are checked against the shapes of its columns") {
  struct words {
    std::int32_t number;
    mr::ragged<std::uint16_t> ids;
  };
  mr::detail::columns<&words::number, &words::ids> columns;
  columns.fix_shapes({1, mr::ragged<std::uint16_t>({1, 2}, {.max_length = 4, .padding = 9})}, 2);
  std::vector<std::byte> slot(columns.batch_bytes());
  const auto row = [](std::int32_t number, std::int32_t length, const std::vector<std::uint16_t>& ids) {
    row_bytes bytes;
    append(bytes, number);
    append(bytes, length);
    for (const std::uint16_t id : ids) append(bytes, id);
    return bytes;
  };
  CHECK(columns.max_row_bytes() == 16);
  CHECK(columns.set_row(slot.data(), 0, row(5, 3, {7, 8, 9})));
  CHECK(columns.set_row(slot.data(), 1, row(6, 0, {})));
  CHECK_FALSE(columns.set_row(slot.data(), 1, row(6, -1, {})));
  CHECK_FALSE(columns.set_row(slot.data(), 1, row(6, 5, {1, 2, 3, 4, 5})));   // longer than max_length
  CHECK_FALSE(columns.set_row(slot.data(), 1, row(6, 2, {1})));
  CHECK_FALSE(columns.set_row(slot.data(), 1, row(6, 1, {1, 2})));
  CHECK_FALSE(columns.set_row(slot.data(), 1, {}));
  CHECK_FALSE(columns.set_row(slot.data(), 1, std::span(slot).first(6)));
  CHECK(columns.set_row(slot.data(), 1, row(6, 1, {4})));
  const auto extent = columns.close(slot.data(), 2);
  const auto [numbers, padded] = columns.views({.base = slot.data(), .rows = 2, .extent = extent});
  const auto& [ids, lengths] = padded;
  CHECK(numbers[0] == 5);
  CHECK(numbers[1] == 6);
  CHECK(lengths[0] == 3);
  CHECK(lengths[1] == 1);
  CHECK(std::vector<std::uint16_t>(ids.data, ids.data + 6) == std::vector<std::uint16_t>{7, 8, 9, 4, 9, 9});

  struct answer {
    bool correct;
  };
  mr::detail::columns<&answer::correct> of_bool;
  of_bool.fix_shapes({true}, 2);
  slot.assign(of_bool.batch_bytes(), std::byte{0});
  for (const unsigned value : {0u, 1u, 2u, 255u}) {   // other values than 0 and 1 are not a bool
    const std::byte byte = static_cast<std::byte>(value);
    CHECK(of_bool.set_row(slot.data(), 1, {&byte, 1}) == (value <= 1));
  }
}
