// ---- batch.hpp
#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);
template <class Pixels, class Labels>
void train_step(const Pixels&, const Labels&, mr::stream_view = {});

void show() {
  mr::session run{mr::shards("train-{000..146}.tar") | mr::map(prepare)
                  | mr::batch<&example::pixels, &example::label>({.size = 256})};
EXAMPLE
}

// ---- batch_lease.hpp
struct some_session {
  mr::batch_lease next();
};
void log(std::size_t rows, std::uint64_t epoch, std::uint64_t step);

void show(some_session& run) {
EXAMPLE
}

// ---- device_batch_output.hpp
// block 1 is a table of the states of slots

// ---- mixed_batch.hpp
#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);
template <class Pixels, class Labels, class Lambda>
void train_step(const Pixels&, const Labels&, const Labels&, const Lambda&, mr::stream_view);

void show() {
  mr::session run{mr::shards("train-{000..146}.tar") | mr::map(prepare)
                  | mr::batch<&example::pixels, &example::label>({.size = 256})
                  | mr::mixup<&example::pixels, &example::label>()};
EXAMPLE
}
