// Defines what the headers of all other rooms declare when MILLRACE_COMPILED is set.
//
//   #include <millrace/compiled/runs.hpp>      // c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
//
// A third of the compiled library: runs.cpp includes it. Builds compile the thirds beside each other.
#pragma once

#include <millrace/base/version.hpp>

#ifndef MILLRACE_COMPILED
#error "millrace/compiled/runs.hpp is for programs that are compiled with -DMILLRACE_COMPILED"
#endif

#include <millrace/sync/batch_ring.ipp>
#include <millrace/sync/notice_outlet.ipp>
#include <millrace/sync/started_thread.ipp>
#include <millrace/order/exact_order.ipp>
#include <millrace/order/lane_cursor.ipp>
#include <millrace/order/lane_jitter.ipp>
#include <millrace/order/mix_cursor.ipp>
#include <millrace/order/mix_pattern.ipp>
#include <millrace/order/mix_plan.ipp>
#include <millrace/order/pass_layout.ipp>
#include <millrace/order/shard_order.ipp>
#include <millrace/order/shuffle_forecast.ipp>
#include <millrace/order/shuffle_quality.ipp>
#include <millrace/order/world.ipp>
#include <millrace/device/host.ipp>
#include <millrace/device/mix_pixels.ipp>
#include <millrace/device/node_memory.ipp>
#include <millrace/device/slot_memory.ipp>
#include <millrace/image/pair_rule.ipp>
#include <millrace/stages/bucket.ipp>
#include <millrace/stages/pack.ipp>
#include <millrace/work/arena_executor.ipp>
#include <millrace/work/batch_rows.ipp>
#include <millrace/work/damage_rule.ipp>
#include <millrace/work/dispatcher.ipp>
#include <millrace/work/executor.ipp>
#include <millrace/work/replay_log.ipp>
#include <millrace/work/sample_names.ipp>
#include <millrace/work/ticket_input.ipp>
#include <millrace/work/worker_segment.ipp>
#include <millrace/read/delivery_account.ipp>
#include <millrace/read/indexed_run.ipp>
#include <millrace/read/indexed_source.ipp>
#include <millrace/read/interleaved_read_stage.ipp>
#include <millrace/read/lane_starts.ipp>
#include <millrace/read/lost_shards.ipp>
#include <millrace/read/mixed_data.ipp>
#include <millrace/read/read_stage_base.ipp>
#include <millrace/read/reader_limit.ipp>
#include <millrace/read/reorder_buffer.ipp>
#include <millrace/read/replayed_run.ipp>
#include <millrace/read/row_stride.ipp>
#include <millrace/read/shard_read_stage.ipp>
#include <millrace/deliver/batch_lease.ipp>
#include <millrace/deliver/batch_output.ipp>
#include <millrace/deliver/device_batch_output.ipp>
#include <millrace/deliver/device_gaps.ipp>
#include <millrace/deliver/new_batch_output.ipp>
#include <millrace/tune/tuning.ipp>
#include <millrace/tune/tuning_search.ipp>
#include <millrace/sources/brace_expansion.ipp>
#include <millrace/sources/entry_points.ipp>
#include <millrace/sources/indexed_shards.ipp>
#include <millrace/sources/json_objects.ipp>
#include <millrace/sources/keys_from.ipp>
#include <millrace/sources/line_reader.ipp>
#include <millrace/sources/lines.ipp>
#include <millrace/sources/listed_key.ipp>
#include <millrace/sources/mix.ipp>
#include <millrace/sources/shard_list.ipp>
#include <millrace/sources/shards.ipp>
#include <millrace/sources/sidecar_counts.ipp>
#include <millrace/sources/token_files.ipp>
#include <millrace/sources/token_layout.ipp>
#include <millrace/sources/write_set_index.ipp>
#include <millrace/run/concurrency.ipp>
#include <millrace/run/damage_account.ipp>
#include <millrace/run/engine.ipp>
#include <millrace/run/flow_facts.ipp>
#include <millrace/run/memory_budget.ipp>
#include <millrace/run/pipeline_builder.ipp>
#include <millrace/run/quarantine_list.ipp>
#include <millrace/run/run_core.ipp>
#include <millrace/run/session_over.ipp>
#include <millrace/run/stall_watcher.ipp>
#include <millrace/report/charts.ipp>
#include <millrace/report/chrome_trace.ipp>
#include <millrace/report/empirical_distribution.ipp>
#include <millrace/report/html_report.ipp>
#include <millrace/report/json_report.ipp>
#include <millrace/report/knobs.ipp>
#include <millrace/report/limits.ipp>
#include <millrace/report/picture_figures.ipp>
#include <millrace/report/pipeline_model.ipp>
#include <millrace/report/run_origin.ipp>
#include <millrace/report/run_report.ipp>
#include <millrace/report/saved_predictions.ipp>
#include <millrace/report/simulation.ipp>
#include <millrace/report/svg_plot.ipp>
#include <millrace/report/text_report.ipp>
#include <millrace/report/verdict.ipp>
#include <millrace/report/what_if.ipp>
#include <millrace/report/write_reports.ipp>
#include <millrace/train/grid_overlay.ipp>
#include <millrace/train/json_lines.ipp>
#include <millrace/train/log.ipp>
#include <millrace/train/metrics.ipp>
#include <millrace/train/row.ipp>
#include <millrace/train/status_line.ipp>
#include <millrace/train/tensorboard.ipp>
#ifdef MILLRACE_CUDA
#include <millrace/device/cuda.ipp>
#include <millrace/device/cuda_error.ipp>
#endif
