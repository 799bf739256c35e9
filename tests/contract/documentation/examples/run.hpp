// ---- concurrency.hpp
void warm_up();
void engine(const mr::session_options& options, unsigned workers, std::size_t reads_that_memory_allows,
            std::uint64_t batches, const mr::flow_statistics& metrics, mr::detail::notice_outlet& notices,
            const std::vector<mr::detail::pipeline_node*>& nodes) {
EXAMPLE
}

// ---- damage_account.hpp
#include <millrace/read/stage/lost_shards.hpp>
#include <millrace/run/session_options.hpp>
void account_for(const mr::session_options& options, mr::detail::lost_shards& lost, mr::event_counts& counts,
                 const mr::detail::ready_batch& batch, const mr::detail::batch_origin& origin) {
EXAMPLE
}

// ---- executor.hpp
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

// ---- flow_facts.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void engine(const mr::session_options& options) {
  auto flow = mr::shards("train.tar") | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
EXAMPLE
}

// ---- pipeline_builder.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
using layout = mr::detail::columns<&example::pixels, &example::label>;
void engine(const mr::detail::pipeline_builder_options& options, mr::detail::batch_ring& batches) {
  auto flow = mr::shards("train.tar") | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
EXAMPLE
}

// ---- quarantine_list.hpp
#include <millrace/shards.hpp>
void train_on(const mr::record& sample);
void example(const mr::record& sample, const std::string& all) {
EXAMPLE
}

// ---- run_core.hpp
void train_step(std::size_t rows);

void engine(const mr::session_options& options, const mr::detail::run_settings& settings,
            mr::detail::planned_run& order, mr::detail::read_stage& reading,
            std::vector<mr::detail::pipeline_node*> nodes, mr::detail::final_segment& last) {
EXAMPLE
}

// ---- session.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void train_step(mr::tensor_view<const std::uint8_t, 4>, mr::tensor_view<const std::int32_t, 1>);
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

// ---- session_options.hpp
#include <millrace/millrace.hpp>
struct example { float number; };
void training(std::vector<example> examples) {
  auto flow = mr::from(std::move(examples)) | mr::batch<&example::number>({.size = 32});
EXAMPLE
}

// ---- session_order.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void engine(const mr::session_options& options, std::size_t budget, mr::detail::notice_outlet& notices) {
  auto flow = mr::shards("train.tar") | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
  auto& source = flow.source;
EXAMPLE
}

// ---- session_errors.hpp
void engine(std::exception_ptr first_error) {
EXAMPLE
}

// ---- session_share.hpp
void example(const mr::session_options& options, const std::vector<unsigned>& cores) {
EXAMPLE
}

// ---- stall_watcher.hpp
std::string waits();
void engine(const mr::detail::trainer_times& times, mr::detail::notice_outlet& notices) {
EXAMPLE
}

// ---- user_executor.hpp
void wake_the_trainer() noexcept;
void core(const mr::session_options& options, std::shared_ptr<mr::detail::worker_task> task) {
EXAMPLE
}
