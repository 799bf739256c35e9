// A feeder computes the rows of a session.
#include "../run/indexed_runs.hpp"
#include "feeders/feeder_rows.hpp"

#include <array>
#include <condition_variable>
#include <deque>

namespace mr = millrace;
using feeder_rows::maker_of;
using feeder_rows::numbered_flow;
using feeder_rows::numbered_row;

namespace {

/// Computes requested rows by a row_maker on its own thread.
class made_rows : public mr::row_storage {
 public:
  explicit made_rows(std::unique_ptr<mr::detail::row_maker> rows) : rows_(std::move(rows)) {
    thread_ = std::thread([this] { answer(); });
  }
  ~made_rows() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void open(const mr::row_run& run) override {
    CHECK(mr::detail::hello_text(run) == mr::detail::hello_text(rows_->run()));
  }
  std::size_t free_rows() override { return 13; }
  void read_rows(const mr::row_range& range, mr::row_slots slots) override {
    const std::lock_guard lock(mutex_);
    queue_.emplace_back(range, std::move(slots));
    changed_.notify_all();
  }

  std::atomic<std::size_t> stored{0};

 private:
  void answer() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      auto [range, slots] = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      std::vector<std::byte> body;
      const auto samples = rows_->samples_of(range);
      CHECK(samples.size() == range.count);
      rows_->compute(samples, 0, body);
      mr::detail::feeder_row_decoder decoder({.rows = range.count, .max_row_bytes = rows_->run().max_row_bytes});
      decoder.add(body, [&, &to = slots](const mr::detail::row_answer& a) {
        if (to.put(a.row, a.bytes, a.crc)) ++stored;
      });
      decoder.finish();
      lock.lock();
    }
  }

  const std::unique_ptr<mr::detail::row_maker> rows_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<mr::row_range, mr::row_slots>> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a feeder computes the rows of a session, in every order and for every number of ranks") {
  for (const std::size_t window : {0, 1, 100, 1'000}) {
    CAPTURE(window);
    const auto run = [&](const std::shared_ptr<mr::row_provider>& storage, int threads) {
      auto options = quiet(threads, 3);
      options.on_damage = {.policy = mr::damage::mask, .at_most_share = 1};
      options.rows = storage;
      mr::session session{numbered_flow(window), options};
      std::vector<std::string> all;
      for (auto& b : session) {
        auto [number, draws, ids, odd] = b.columns();
        for (std::size_t i = 0; i < b.size(); ++i) {
          std::string text = std::to_string(number[i]) + " " + std::to_string(odd[i]);
          for (std::size_t j = 0; j < 3; ++j) text += " " + std::to_string(draws[i][j]);
          for (std::size_t j = 0; j < 4 && j < ids.values.shape[1]; ++j) text += " " + std::to_string(ids.values[i][j]);
          all.push_back(std::move(text));
        }
        all.push_back(mr::to_text(b.position()));
      }
      return all;
    };
    const auto expected = run(nullptr, 2);
    for (const int threads : {0, 2}) {
      const mr::session_options of{.epochs = 3, .on_damage = {.policy = mr::damage::mask, .at_most_share = 1}};
      const auto storage = std::make_shared<made_rows>(maker_of(numbered_flow(window), of));
      for (int times = 0; times == 0 || (threads == 0 && storage->stored == 0 && times < 100); ++times)
        CHECK(run(storage, threads) == expected);   // a busy machine may run the other thread too late
      if (threads == 0) CHECK(storage->stored > 0);
    }
  }
}

TEST_CASE("a feeder computes the rows of shards for each rank, and of resumed runs") {
  const temporary_folder folder;
  const std::string shards = indexed_runs::write_shards(folder) + "/s*.tar";
  for (const std::size_t window : {0, 60, 1'000})
    for (const std::size_t ranks : {1, 2, 3}) {
      CAPTURE(window);
      CAPTURE(ranks);
      indexed_runs::run_options o{.epochs = 3, .lanes = 6, .threads = 0, .window = window, .keys = false};
      const auto expected = indexed_runs::run_all_ranks(shards, o, 1);
      o.world.size = ranks;
      const auto storage = std::make_shared<made_rows>(
          maker_of(indexed_runs::flow(shards, o), {.world = o.world, .lanes = 6}));
      o.storage_of_rows = storage;
      for (int times = 0; times == 0 || (storage->stored == 0 && times < 100); ++times)
        CHECK(indexed_runs::run_all_ranks(shards, o, ranks).batches == expected.batches);
      CHECK(storage->stored > 0);
      if (ranks > 1) continue;
      o.resume = expected.positions[9];
      CHECK(indexed_runs::run(shards, o).batches ==
            std::vector(expected.batches.begin() + 10, expected.batches.end()));
    }
}

TEST_CASE("the bytes of a row are those that a session reads, for every kind of column") {
  struct kinds {
    bool odd;
    mr::ragged<float, 2> boxes;
    mr::ragged<std::uint16_t> ids;
    std::array<std::int32_t, 2> pair;
  };
  using layout = mr::detail::columns<&kinds::odd, &kinds::boxes, &kinds::ids, &kinds::pair>;
  const auto item = [](std::size_t length) {
    mr::tensor<float, 2> boxes({length, 3});
    std::fill(boxes.span().begin(), boxes.span().end(), 0.5F + static_cast<float>(length));
    return kinds{length % 2 == 1, mr::ragged<float, 2>(boxes, {.max_length = 4}),
                 mr::ragged<std::uint16_t>(std::vector<std::uint16_t>(4 - length, 7),
                                           {.max_length = 4, .padding = 9, .fixed = true}),
                 {1, static_cast<std::int32_t>(length)}};
  };
  layout columns;
  columns.fix_shapes(item(2), 3);
  std::vector<std::byte> slot(columns.batch_bytes()), copy(columns.batch_bytes());
  mr::scratch memory;
  const kinds items[] = {item(0), item(4), item(3)};
  const kinds* const all[] = {&items[0], &items[1], &items[2]};
  columns.render(all, slot.data(), 0, memory);
  std::vector<std::byte> row;
  for (std::size_t i = 0; i < 3; ++i) {
    row.clear();
    columns.append_row(slot.data(), i, row);
    CHECK(row.size() <= columns.max_row_bytes());
    CHECK(columns.set_row(copy.data(), i, row));
  }
  columns.close(slot.data(), 3);
  columns.close(copy.data(), 3);
  CHECK(slot == copy);
}

TEST_CASE("many ranks have cursors, unless their permutations need too much memory") {
  CHECK(mr::detail::cursor_limit(0) == 64);
  CHECK(mr::detail::cursor_limit(1'281'167) == 52);   // samples of ImageNet: 10 MB for each cursor
  CHECK(mr::detail::cursor_limit(std::uint64_t{1} << 40) == 4);
}

TEST_CASE("flows whose rows cannot be computed alone have no feeder") {
  const auto start = [](auto flow) { mr::feed_rows(std::move(flow), {.listen = "127.0.0.1:0"}); };
  const auto prepare = mr::map([](int n) {
    numbered_row row{};
    row.number = n;
    return row;
  });
  const auto to_batch = mr::batch<&numbered_row::number>({.size = 4});
  const auto stream = [n = 0]() mutable { return n < 40 ? std::optional(n++) : std::nullopt; };
  const char* const expected = "feed_rows() needs a flow in which each row can be computed alone";
  CHECK_THROWS_WITH_AS(start(mr::from(stream) | prepare | to_batch), doctest::Contains(expected), mr::setup_error);
  CHECK_THROWS_WITH_AS(start(mr::from(numbers(40)) | mr::filter([](int n) { return n > 3; }) | prepare | to_batch),
                       doctest::Contains(expected), mr::setup_error);
  CHECK_THROWS_AS(start(mr::shards("/nothing/s-{0..3}.tar") | mr::map([](const mr::record&) {
                          return numbered_row{};
                        }) | to_batch),
                  mr::setup_error);
}
