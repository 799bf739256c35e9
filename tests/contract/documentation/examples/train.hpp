// ---- device_sums.hpp
#include <millrace/image/labels/label_map.hpp>
#include <millrace/train/metrics.hpp>
EXAMPLE

// ---- json_lines.hpp
#include <millrace/train/log.hpp>
void logging() {
EXAMPLE
}

// ---- log.hpp
#include <millrace/metrics.hpp>
void keep(mr::row& r);
void logging(std::uint64_t step, double rate, mr::row r) {
EXAMPLE 1
}
struct database { void insert(std::uint64_t step, const std::vector<mr::quantity>& values); };
extern database connection;
void logging() {
EXAMPLE 2
}

// ---- metrics.hpp
#include <millrace/image/labels/label_map.hpp>
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
std::pair<float, mr::tensor_view<const float, 2>> train_step(mr::batch_of<&example::pixels, &example::label>& b);
void training(mr::log& out) {
  mr::session run{mr::shards("train.tar") | mr::map(prepare) |
                  mr::batch<&example::pixels, &example::label>({.size = 256})};
EXAMPLE 1
}
void group(mr::metrics& m, mr::mean_metric& loss, mr::accuracy_metric& top, mr::tensor_view<const float, 1> losses,
           mr::tensor_view<const float, 2> logits, mr::tensor_view<const std::int32_t, 1> labels, mr::stream_view s) {
EXAMPLE 2
}

// ---- picture_grid.hpp
#include <millrace/millrace.hpp>
#include <millrace/item/tensor/ragged.hpp>
struct example { mr::picture pixels; mr::label_map<> mask; mr::ragged<float, 2> boxes; };
void show(mr::batch_of<&example::pixels, &example::mask, &example::boxes>& b, mr::tensor_view<const float, 4> numbers,
          const mr::normalize_options& options, mr::log& out, std::uint64_t n) {
EXAMPLE
}

// ---- status_line.hpp
#include <millrace/train/log.hpp>
void logging() {
EXAMPLE
}

// ---- tensorboard.hpp
#include <millrace/train/log.hpp>
void logging(const std::vector<std::byte>& jpeg_bytes) {
EXAMPLE
}
