// Definitions for all headers that files.hpp, pictures.hpp, python.hpp, stores.hpp and remote.hpp do not cover.
// Requires MILLRACE_COMPILED.
//
//   #include <millrace/compiled/runs.hpp>      // c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
//
// The compiled library has three parts, which a build compiles in parallel: files.cpp, pictures.cpp and runs.cpp.
// runs.cpp includes this header.
#pragma once

#include <millrace/base/version.hpp>

#ifndef MILLRACE_COMPILED
#error "millrace/compiled/runs.hpp is for programs that are compiled with -DMILLRACE_COMPILED"
#endif

#include <millrace/base/impl/json_objects.inl>
#include <millrace/sync/impl/batch_ring.inl>
#include <millrace/sync/impl/start_thread.inl>
#include <millrace/order/impl/exact_order.inl>
#include <millrace/order/impl/lane_cursor.inl>
#include <millrace/order/impl/mix_pattern.inl>
#include <millrace/order/impl/mix_plan.inl>
#include <millrace/order/impl/mix_schedule.inl>
#include <millrace/order/impl/shard_order.inl>
#include <millrace/order/impl/shuffle_quality.inl>
#include <millrace/item/impl/world.inl>
#include <millrace/image/plan/impl/pair_rule.inl>
#include <millrace/device/impl/host.inl>
#include <millrace/device/impl/mix_rows.inl>
#include <millrace/device/impl/node_memory.inl>
#include <millrace/stages/impl/pack.inl>
#include <millrace/work/batch/impl/batch_rows.inl>
#include <millrace/work/batch/impl/damage_rule.inl>
#include <millrace/work/schedule/impl/dispatcher.inl>
#include <millrace/work/schedule/impl/worker_executor.inl>
#include <millrace/work/schedule/impl/worker_segment.inl>
#include <millrace/work/segment/impl/replay_log.inl>
#include <millrace/work/segment/impl/stage_passages.inl>
#include <millrace/work/segment/ticket_input.tpl.hpp>
#include <millrace/read/mix/impl/mixed_data.inl>
#include <millrace/read/run/impl/planned_run.inl>
#include <millrace/read/run/impl/replayed_run.inl>
#include <millrace/read/run/indexed_run.tpl.hpp>
#include <millrace/read/stage/impl/lost_shards.inl>
#include <millrace/read/stage/interleaved_read_stage.tpl.hpp>
#include <millrace/read/stage/read_stage_base.tpl.hpp>
#include <millrace/read/stage/reorder_buffer.tpl.hpp>
#include <millrace/deliver/impl/batch_lease.inl>
#include <millrace/deliver/impl/device_batch_output.inl>
#include <millrace/tune/impl/tuning.inl>
#include <millrace/sources/impl/files.inl>
#include <millrace/sources/impl/join.inl>
#include <millrace/sources/impl/keys_from.inl>
#include <millrace/sources/impl/lines.inl>
#include <millrace/sources/impl/token_windows.inl>
#include <millrace/sources/impl/shards.inl>
#include <millrace/sources/impl/token_data.inl>
#include <millrace/sources/impl/token_files.inl>
#include <millrace/sources/impl/token_layout.inl>
#include <millrace/sources/list/impl/brace_expansion.inl>
#include <millrace/sources/list/impl/listed_key.inl>
#include <millrace/sources/list/impl/path_glob.inl>
#include <millrace/sources/list/impl/shard_list.inl>
#include <millrace/sources/list/impl/sidecar_counts.inl>
#include <millrace/sources/prepare/impl/entry_points.inl>
#include <millrace/sources/prepare/impl/write_set_index.inl>
#include <millrace/run/impl/concurrency.inl>
#include <millrace/run/impl/damage_account.inl>
#include <millrace/run/impl/engine.inl>
#include <millrace/run/impl/flow_facts.inl>
#include <millrace/run/impl/memory_budget.inl>
#include <millrace/run/impl/pipeline_builder.inl>
#include <millrace/run/impl/quarantine_list.inl>
#include <millrace/run/impl/run_core.inl>
#include <millrace/run/impl/session_errors.inl>
#include <millrace/run/impl/stall_watcher.inl>
#include <millrace/run/impl/user_executor.inl>
#include <millrace/report/impl/run_report.inl>
#include <millrace/report/impl/saved_predictions.inl>
#include <millrace/report/impl/session_report.inl>
#include <millrace/report/print/impl/charts.inl>
#include <millrace/report/print/impl/json_report.inl>
#include <millrace/report/print/impl/html_report.inl>
#include <millrace/report/print/impl/text_report.inl>
#include <millrace/report/print/impl/write_reports.inl>
#include <millrace/report/simulate/impl/what_if.inl>
#include <millrace/report/verdict/impl/limits.inl>
#include <millrace/report/verdict/impl/knobs.inl>
#include <millrace/report/verdict/impl/verdict.inl>
#include <millrace/train/impl/picture_grid.inl>
#include <millrace/train/impl/json_lines.inl>
#include <millrace/train/impl/log.inl>
#include <millrace/train/impl/metrics.inl>
#include <millrace/train/impl/status_line.inl>
#include <millrace/train/impl/tensorboard.inl>
#include <millrace/adapt/feeders/impl/row_storage.inl>
#ifdef MILLRACE_CUDA
#include <millrace/device/impl/cuda.inl>
#include <millrace/device/impl/cuda_error.inl>
#endif
