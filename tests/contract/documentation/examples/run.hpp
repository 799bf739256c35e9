// ---- device/best_device.hpp
#include <millrace/millrace.hpp>
struct example { std::array<float, 8> features; };
void example_of(std::vector<example>& examples) {
EXAMPLE
}

// ---- device/device.hpp
#include <millrace/millrace.hpp>
struct example { std::array<float, 8> features; };
void example_of(std::vector<example>& examples) {
EXAMPLE
}

// ---- device/host.hpp
#include <millrace/millrace.hpp>
struct example { std::array<float, 8> features; };
void step(mr::tensor_view<const float, 2> features, mr::stream_view stream);
void example_of(std::vector<example>& examples) {
EXAMPLE
}

// ---- device/mix_rows.hpp
#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);

void show(std::uint8_t* first, std::uint8_t* second, const mr::row_mix& how) {
  mr::session run{mr::shards("train-{000..146}.tar") | mr::map(prepare)
                  | mr::batch<&example::pixels, &example::label>({.size = 256})
                  | mr::mixup<&example::pixels, &example::label>({.deferred = true})};
  for (auto& b : run) {
EXAMPLE
  }
}

// ---- device/node_memory.hpp
void fill(void*);
void example(const std::vector<unsigned>& near_cores) {
EXAMPLE
}

// ---- device/normalize.hpp
void example(mr::tensor_view<const std::uint8_t, 4> pixels, mr::tensor_view<float, 4> numbers) {
EXAMPLE
}

// ---- device/row_grid.hpp
#include <millrace/item/tensor/tensor.hpp>
template <class Batch>
void show(const mr::tensor_view<std::uint8_t, 4>& pixels, const Batch& b) {
EXAMPLE
  static_cast<void>(grid);
}

// ---- device/stream.hpp
#include <millrace/millrace.hpp>
using cudaStream_t = CUstream_st*;
struct item { float x; };
void example(cudaStream_t my_cuda_stream, mr::batch_of<&item::x>& b) {
EXAMPLE
}

// ---- device/view.hpp
EXAMPLE

// ---- report/charts.hpp
void example(std::string& page, const mr::run_report& r) {
EXAMPLE
}

// ---- report/html_report.hpp
void write(const std::string& page);

void example(const mr::flow_statistics& window, mr::timeline events) {
EXAMPLE
}

// ---- report/json_report.hpp
void write(const std::string& json);
void example(const mr::flow_statistics& window, const mr::timeline& events) {
EXAMPLE
}

// ---- report/text_report.hpp
#include <cstdio>

// block 2 is a report's first lines
void example(const mr::flow_statistics& window) {
EXAMPLE 1
}

// ---- report/write_reports.hpp
#include <millrace/millrace.hpp>
#include <millrace/report/session_report.hpp>

struct row {
  std::int32_t label;
};

void example(const mr::session<&row::label>& run) {
EXAMPLE
}

// ---- report/run_report.hpp
#include <millrace/millrace.hpp>
#include <millrace/report/print/text_report.hpp>

#include <cstdio>

struct row {
  std::int32_t label;
};

void example(const mr::flow_statistics& window, mr::timeline events, const mr::session<&row::label>& run) {
EXAMPLE
}

// ---- report/saved_predictions.hpp
#include <millrace/millrace.hpp>
#include <millrace/report.hpp>

struct row {
  std::int32_t label;
};

void example(const mr::session<&row::label>& run) {
EXAMPLE
}

// ---- report/session_report.hpp
#include <millrace/millrace.hpp>
#include <millrace/report/print/text_report.hpp>

struct row {
  std::int32_t label;
};

void example(const mr::session<&row::label>& run) {
EXAMPLE
}

// ---- report/pipeline_model.hpp
#include <millrace/report/simulate/what_if.hpp>

void example(const mr::flow_statistics& window) {
EXAMPLE
}

// ---- report/what_if.hpp
void example(const mr::flow_statistics& window) {
EXAMPLE
}

// ---- report/knobs.hpp
#include <cstdio>

void example(const mr::flow_statistics& statistics) {
EXAMPLE
}

// ---- report/limits.hpp
#include <millrace/millrace.hpp>

#include <cstdio>

struct row {
  std::int32_t label;
};

void example(const mr::flow_statistics& statistics, const mr::session<&row::label>& run) {
EXAMPLE
}

// ---- report/verdict.hpp
#include <millrace/report/verdict/knobs.hpp>

#include <cstdio>

void example(const mr::flow_statistics& statistics) {
EXAMPLE
}

// ---- run/concurrency.hpp
void warm_up();
void engine(const mr::session_options& options, unsigned workers, std::size_t reads_that_memory_allows,
            std::uint64_t batches, const mr::flow_statistics& metrics, mr::detail::notice_outlet& notices,
            const std::vector<mr::detail::pipeline_node*>& nodes) {
EXAMPLE
}

// ---- run/damage_account.hpp
#include <millrace/read/stage/lost_shards.hpp>
#include <millrace/run/session_options.hpp>
void account_for(const mr::session_options& options, mr::detail::lost_shards& lost, mr::event_counts& counts,
                 const mr::detail::ready_batch& batch, const mr::detail::batch_origin& origin) {
EXAMPLE
}

// ---- run/executor.hpp
#include <millrace/millrace.hpp>
struct thread_pool {
  void post(std::function<void()> task);
  unsigned size() const noexcept;
};
struct row { std::int32_t n; };
void example(thread_pool& pool, std::vector<row> rows) {
  auto flow = mr::from(std::move(rows)) | mr::batch<&row::n>({.size = 256});
EXAMPLE
}

// ---- run/flow_facts.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void engine(const mr::session_options& options) {
  auto flow = mr::shards("train.tar") | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
EXAMPLE
}

// ---- run/pipeline_builder.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
using layout = mr::detail::columns<&example::pixels, &example::label>;
void engine(const mr::detail::pipeline_builder_options& options, mr::detail::batch_ring& batches) {
  auto flow = mr::shards("train.tar") | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
EXAMPLE
}

// ---- run/quarantine_list.hpp
#include <millrace/shards.hpp>
void train_on(const mr::record& sample);
void example(const mr::record& sample, const std::string& all) {
EXAMPLE
}

// ---- run/run_core.hpp
void train_step(std::size_t rows);

void engine(const mr::session_options& options, const mr::detail::run_settings& settings,
            mr::detail::planned_run& order, mr::detail::read_stage& reading,
            std::vector<mr::detail::pipeline_node*> nodes, mr::detail::final_segment& last) {
EXAMPLE
}

// ---- run/session.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void train_step(mr::tensor_view<const std::uint8_t, 4>, mr::tensor_view<const std::int32_t, 1>, mr::stream_view = {});
void validate();
auto new_flow() {
  return mr::shards("train.tar") | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
}
void one_loop() {
  auto flow = new_flow();
EXAMPLE 1
}
auto flow_of(const std::string&) { return new_flow(); }
EXAMPLE 2
void loops(decltype(mr::session(new_flow()))& run) {
EXAMPLE 3
}
void callback() {
  auto flow = new_flow();
EXAMPLE 4
}

// ---- run/session_options.hpp
#include <millrace/millrace.hpp>
struct example { float number; };
void training(std::vector<example> examples) {
  auto flow = mr::from(std::move(examples)) | mr::batch<&example::number>({.size = 32});
EXAMPLE
}

// ---- run/session_order.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void engine(const mr::session_options& options, std::size_t budget, mr::detail::notice_outlet& notices) {
  auto flow = mr::shards("train.tar") | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
  auto& source = flow.source;
EXAMPLE
}

// ---- run/session_errors.hpp
void engine(std::exception_ptr first_error) {
EXAMPLE
}

// ---- run/session_share.hpp
void example(const mr::session_options& options, const std::vector<unsigned>& cores) {
EXAMPLE
}

// ---- run/stall_watcher.hpp
std::string waits();
void engine(const mr::detail::trainer_times& times, mr::detail::notice_outlet& notices) {
EXAMPLE
}

// ---- run/user_executor.hpp
void wake_the_trainer() noexcept;
void core(const mr::session_options& options, std::shared_ptr<mr::detail::worker_task> task) {
EXAMPLE
}

// ---- train/device_sums.hpp
#include <millrace/image/labels/label_map.hpp>
#include <millrace/train/metrics.hpp>
EXAMPLE 1
void sums(double loss, std::size_t batch_size, const mr::metric_totals& others) {
EXAMPLE 2
}
void ranks(std::span<const float> logits_of_one_sample, std::size_t label) {
EXAMPLE 3
}

// ---- train/json_lines.hpp
#include <millrace/train/log.hpp>
void logging() {
EXAMPLE
}

// ---- train/log.hpp
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
void use(double value);
void logging(mr::log& out, const mr::row& r) {
EXAMPLE 3
}

// ---- train/metrics.hpp
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

// ---- train/picture_grid.hpp
#include <millrace/millrace.hpp>
#include <millrace/item/tensor/ragged.hpp>
struct example { mr::picture pixels; mr::label_map<> mask; mr::ragged<float, 2> boxes; };
void show(mr::batch_of<&example::pixels, &example::mask, &example::boxes>& b, mr::tensor_view<const float, 4> numbers,
          const mr::normalize_options& options, mr::log& out, std::uint64_t n) {
EXAMPLE
}

// ---- train/status_line.hpp
#include <millrace/train/log.hpp>
void logging() {
EXAMPLE
}

// ---- train/tensorboard.hpp
#include <millrace/train/log.hpp>
void logging(const std::vector<std::byte>& jpeg_bytes) {
EXAMPLE
}
