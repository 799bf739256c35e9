// Defines what the headers of base/, measure/, item/ and io/ declare when MILLRACE_COMPILED is set.
//
//   #include <millrace/compiled/files.hpp>      // c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
//
// A third of the compiled library: files.cpp includes it. Builds compile the thirds beside each other.
#pragma once

#include <millrace/base/version.hpp>

#ifndef MILLRACE_COMPILED
#error "millrace/compiled/files.hpp is for programs that are compiled with -DMILLRACE_COMPILED"
#endif

#include <millrace/base/channel_scale.ipp>
#include <millrace/base/crc32c.ipp>
#include <millrace/base/error.ipp>
#include <millrace/base/file_kind.ipp>
#include <millrace/base/format.ipp>
#include <millrace/base/json_writer.ipp>
#include <millrace/base/machine.ipp>
#include <millrace/base/numa.ipp>
#include <millrace/base/text.ipp>
#include <millrace/measure/meters/copy_times.ipp>
#include <millrace/measure/values/distribution.ipp>
#include <millrace/measure/values/event_counts.ipp>
#include <millrace/measure/values/flow_figures.ipp>
#include <millrace/measure/values/process_figures.ipp>
#include <millrace/measure/values/read_levels.ipp>
#include <millrace/measure/meters/read_meter.ipp>
#include <millrace/measure/meters/run_figures.ipp>
#include <millrace/measure/meters/span_ring.ipp>
#include <millrace/measure/meters/timeline.ipp>
#include <millrace/measure/meters/trainer_times.ipp>
#include <millrace/measure/meters/worker_times.ipp>
#include <millrace/item/tensor/array.ipp>
#include <millrace/item/tensor/bad_element_access.ipp>
#include <millrace/item/borrowed_guard.ipp>
#include <millrace/item/bytes.ipp>
#include <millrace/item/tensor/column_texts.ipp>
#include <millrace/item/position.ipp>
#include <millrace/item/record.ipp>
#include <millrace/item/record_builder.ipp>
#include <millrace/item/tensor/scalar.ipp>
#include <millrace/io/file/abandoned_files.ipp>
#include <millrace/io/file/append_file.ipp>
#include <millrace/io/file/at_once.ipp>
#include <millrace/io/file/byte_source.ipp>
#include <millrace/io/file/file_list.ipp>
#include <millrace/io/file/foreign_file.ipp>
#include <millrace/io/file/last_line.ipp>
#include <millrace/io/file/metered_file.ipp>
#include <millrace/io/file/posix_files.ipp>
#include <millrace/io/file/read_file.ipp>
#include <millrace/io/file/storage.ipp>
#include <millrace/io/cache/cache_block.ipp>
#include <millrace/io/cache/cache_contents.ipp>
#include <millrace/io/cache/cache_counts.ipp>
#include <millrace/io/cache/cache_folder.ipp>
#include <millrace/io/cache/cache_ledger.ipp>
#include <millrace/io/cache/cache_options.ipp>
#include <millrace/io/cache/cache_plan.ipp>
#include <millrace/io/cache/cached_storage.ipp>
#include <millrace/io/tar/read/archive.ipp>
#include <millrace/io/tar/read/counted_beside.ipp>
#include <millrace/io/tar/read/gzip_inflater.ipp>
#include <millrace/io/tar/format/member_name.ipp>
#include <millrace/io/tar/read/plain_tar.ipp>
#include <millrace/io/tar/format/required_fields.ipp>
#include <millrace/io/tar/read/returning_keys.ipp>
#include <millrace/io/tar/read/shard_reader.ipp>
#include <millrace/io/tar/read/shard_stream.ipp>
#include <millrace/io/tar/read/tail_source.ipp>
#include <millrace/io/tar/format/tar_fields.ipp>
#include <millrace/io/tar/format/tar_header.ipp>
#include <millrace/io/tar/read/tar_reader.ipp>
#include <millrace/io/tar/format/wanted_fields.ipp>
#include <millrace/io/index/read/block_cache.ipp>
#include <millrace/io/index/entries/entries_build.ipp>
#include <millrace/io/index/entries/entry_file.ipp>
#include <millrace/io/index/entries/entry_files.ipp>
#include <millrace/io/index/set/index_build.ipp>
#include <millrace/io/index/format/index_file.ipp>
#include <millrace/io/index/format/index_format.ipp>
#include <millrace/io/index/read/indexed_reader.ipp>
#include <millrace/io/index/choice/key_list.ipp>
#include <millrace/io/index/set/known_shard.ipp>
#include <millrace/io/index/choice/sample_choice.ipp>
#include <millrace/io/index/format/set_index.ipp>
#include <millrace/io/index/set/shard_data.ipp>
#include <millrace/io/index/set/shard_heads.ipp>
#include <millrace/io/index/format/shard_index.ipp>
#include <millrace/io/index/format/shard_index_builder.ipp>
#include <millrace/io/index/format/tar_index_scan.ipp>
