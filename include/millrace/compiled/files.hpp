// Definitions for the headers of base/, measure/, item/, io/ and audio/ if MILLRACE_COMPILED is set.
//
//   #include <millrace/compiled/files.hpp>      // c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
//
// The compiled library has three parts, which a build compiles in parallel: files.cpp, pictures.cpp and runs.cpp.
// files.cpp includes this header.
#pragma once

#include <millrace/base/version.hpp>

#ifndef MILLRACE_COMPILED
#error "millrace/compiled/files.hpp is for programs that are compiled with -DMILLRACE_COMPILED"
#endif

#include <millrace/audio/impl/audio.inl>
#include <millrace/audio/impl/wav.inl>
#include <millrace/base/impl/channel_scale.inl>
#include <millrace/base/impl/crc32c.inl>
#include <millrace/base/impl/error.inl>
#include <millrace/base/impl/file_kind.inl>
#include <millrace/base/impl/format.inl>
#include <millrace/base/impl/json_writer.inl>
#include <millrace/base/impl/machine.inl>
#include <millrace/base/impl/notice.inl>
#include <millrace/base/impl/numa.inl>
#include <millrace/base/impl/text.inl>
#include <millrace/measure/meters/impl/phase_times.inl>
#include <millrace/measure/meters/impl/read_meter.inl>
#include <millrace/measure/meters/impl/run_statistics.inl>
#include <millrace/measure/meters/impl/span_ring.inl>
#include <millrace/measure/meters/impl/trainer_times.inl>
#include <millrace/measure/values/impl/event_counts.inl>
#include <millrace/measure/values/impl/flow_statistics.inl>
#include <millrace/measure/values/impl/process_statistics.inl>
#include <millrace/measure/values/impl/read_levels.inl>
#include <millrace/measure/values/impl/timeline.inl>
#include <millrace/item/impl/borrowed_guard.inl>
#include <millrace/item/impl/bytes.inl>
#include <millrace/item/impl/position.inl>
#include <millrace/item/impl/record.inl>
#include <millrace/item/impl/record_builder.inl>
#include <millrace/item/impl/scratch.inl>
#include <millrace/item/column/impl/slot_contents.inl>
#include <millrace/item/tensor/impl/array.inl>
#include <millrace/item/tensor/impl/tensor_view.inl>
#include <millrace/item/tensor/impl/tensor.inl>
#include <millrace/io/file/impl/append_file.inl>
#include <millrace/io/file/impl/atomic_file.inl>
#include <millrace/io/file/impl/byte_source.inl>
#include <millrace/io/file/impl/file_list.inl>
#include <millrace/io/file/impl/foreign_file.inl>
#include <millrace/io/file/impl/metered_file.inl>
#include <millrace/io/file/impl/read_file.inl>
#include <millrace/io/file/impl/storage.inl>
#include <millrace/io/cache/impl/cache_block.inl>
#include <millrace/io/cache/impl/cache_contents.inl>
#include <millrace/io/cache/impl/cache_folder.inl>
#include <millrace/io/cache/impl/cache_ledger.inl>
#include <millrace/io/cache/impl/cached_storage.inl>
#include <millrace/io/tar/format/impl/required_fields.inl>
#include <millrace/io/tar/format/impl/tar_fields.inl>
#include <millrace/io/tar/format/impl/tar_header.inl>
#include <millrace/io/tar/read/impl/declared_samples.inl>
#include <millrace/io/tar/read/impl/gzip_inflater.inl>
#include <millrace/io/tar/read/impl/plain_tar.inl>
#include <millrace/io/tar/read/impl/returning_keys.inl>
#include <millrace/io/tar/read/impl/shard_reader.inl>
#include <millrace/io/tar/read/impl/shard_stream.inl>
#include <millrace/io/tar/read/impl/tar_reader.inl>
#include <millrace/io/tar/write/impl/shard_writer.inl>
#include <millrace/io/index/choice/impl/key_list.inl>
#include <millrace/io/index/choice/impl/sample_choice.inl>
#include <millrace/io/index/entries/impl/entries_build.inl>
#include <millrace/io/index/entries/impl/entry_files.inl>
#include <millrace/io/index/format/impl/index_file.inl>
#include <millrace/io/index/format/impl/index_format.inl>
#include <millrace/io/index/format/impl/set_index.inl>
#include <millrace/io/index/format/impl/shard_index.inl>
#include <millrace/io/index/format/impl/tar_index_scan.inl>
#include <millrace/io/index/read/impl/block_cache.inl>
#include <millrace/io/index/read/impl/indexed_reader.inl>
#include <millrace/io/index/set/impl/index_build.inl>
#include <millrace/io/index/set/impl/shard_data.inl>
#include <millrace/io/index/set/impl/shard_heads.inl>
