// Definitions for indexed_reader.hpp.
#pragma once

#include <millrace/io/index/read/indexed_reader.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/random.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/tar/read/tail_source.hpp>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE indexed_reader::indexed_reader(byte_source& source, shard_index& index, block_pool& pool,
                                             indexed_reader_options options, byte_source* entries)
    // clang-format off
    : source_(&source), entries_(index.entries().bytes() > 0 ? entries : nullptr), index_(&index), pool_(&pool),
      options_(std::move(options)), gap_(source.reads_parts() ? gap_bytes : 0) {
  // clang-format on
  const selected_fields selected(options_.fields);
  for (std::uint32_t field = 0; field < index.fields(); ++field)
    fields_.push_back({.selected = selected.contains(index.field_name(field)), .name = index.field_name(field)});
}

MILLRACE_INLINE std::size_t indexed_reader::read(std::span<const std::uint32_t> numbers, std::span<record> records) {
  failure_ = nullptr;
  failed_at_ = numbers.size();
  records_ = records;
  order_.resize(numbers.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  if (!std::is_sorted(numbers.begin(), numbers.end()))
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a < b; });
  begin_block();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::uint32_t number = numbers[order_[i]];
    if (i > 0 && number == numbers[order_[i - 1]]) continue;
    if (add(order_[i], number)) continue;
    if (!planned_.empty()) finish_block();
    if (!add(order_[i], number)) read_alone(order_[i], number);
  }
  if (!planned_.empty()) finish_block();
  for (std::size_t i = 1; i < order_.size(); ++i)
    if (numbers[order_[i]] == numbers[order_[i - 1]]) records[order_[i]] = records[order_[i - 1]];
  return failed_at_;
}

MILLRACE_INLINE void indexed_reader::announce(std::span<const std::uint32_t> numbers) {
  std::vector<byte_range> ranges;
  for (const std::uint32_t number : numbers) {
    const indexed_sample sample = index_->sample(number);
    for (std::uint32_t m = sample.first_member; m < sample.end_member; ++m) {
      if (!fields_[index_->field_of(m)].selected) continue;
      const indexed_member member = index_->member(m);
      const std::uint64_t end = member.offset_bytes + member.size_bytes;
      byte_range* const last = ranges.empty() ? nullptr : &ranges.back();
      if (last && member.offset_bytes >= last->offset_bytes &&
          member.offset_bytes <= last->offset_bytes + last->size_bytes + options_.largest_gap_bytes) {
        last->size_bytes = std::max(last->size_bytes, end - last->offset_bytes);
      } else {
        ranges.push_back({member.offset_bytes, member.size_bytes});
      }
    }
  }
  source_->will_read(ranges);
  if (entries_) announce_entries(numbers);
}

MILLRACE_INLINE void indexed_reader::announce_entries(std::span<const std::uint32_t> numbers) {
  std::vector<byte_range> ranges;
  for (const std::uint32_t number : numbers) {
    const indexed_sample sample = index_->sample(number);
    for (std::uint32_t m = sample.first_member; m < sample.end_member; ++m)
      if (fields_[index_->field_of(m)].selected) ranges.push_back(index_->entries().range_of(m));
  }
  entries_->will_read(ranges);
}

MILLRACE_INLINE record indexed_reader::read_one(std::uint32_t number) {
  record one;
  if (read({&number, 1}, {&one, 1}) == 0) std::rethrow_exception(failure_);
  return one;
}

MILLRACE_RARE void indexed_reader::throw_damage() {
  shard_reader reader = reader_of({.number = index_->samples(), .offset_bytes = index_->facts().resume_offset_bytes});
  while (reader.next()) {}
  throw data_error("the shard is intact now, but was damaged when its index was built: " + printable(index_->damage()),
                   "Remove its index, and start again", where({}, index_->facts().damage_offset_bytes));
}

MILLRACE_RARE void indexed_reader::throw_missing_end_marker() {
  const std::uint32_t last = index_->samples() == 0 ? 0 : index_->samples() - 1;
  const std::uint64_t offset_bytes = index_->samples() == 0 ? 0 : index_->sample(last).offset_bytes;
  shard_reader reader = reader_of({.number = last, .offset_bytes = offset_bytes, .strict = true});
  while (reader.next()) {}
  throw data_error("the shard had no end marker when its index was built, but has one now",
                   "Remove its index, and start again", where({}, offset_bytes));
}

MILLRACE_INLINE void indexed_reader::begin_block() {
  planned_.clear();
  parts_.clear();
  pieces_.clear();
  payload_bytes_ = 0;
  tail_bytes_ = source_->name().size();
  block_entries_ = 0;
  ++block_number_;
}

MILLRACE_INLINE bool indexed_reader::add(std::size_t position, std::uint32_t number) {
  const indexed_sample sample = index_->sample(number);
  const std::size_t parts = parts_.size(), pieces = pieces_.size(), payload = payload_bytes_, tail = tail_bytes_;
  const std::size_t with_entries = block_entries_;
  const std::optional<piece> last = pieces == 0 ? std::nullopt : std::optional(pieces_.back());
  bool fits = true;
  std::uint64_t sample_bytes = 0, fields = 0;
  ++added_;
  for (std::uint32_t m = sample.first_member; m < sample.end_member && fits; ++m) {
    field_state& field = fields_[index_->field_of(m)];
    if (!field.selected) continue;
    const indexed_member member = index_->member(m);
    // The sample does not match the index. shard_reader reads it again, and throws the right error.
    sample_bytes += member.size_bytes + member.field.size();
    fits = member.in_one_piece && member.size_bytes <= options_.limits.max_member_bytes && field.used_in != added_ &&
           sample_bytes <= options_.limits.max_sample_bytes && ++fields <= options_.limits.max_fields;
    field.used_in = added_;
    if (fits) add_part(m, member);
    tail_bytes_ += member.field.size() + sizeof(field_entry);
    if (entries_) add_entries(m);
  }
  if (!fits || (!planned_.empty() && payload_bytes_ > options_.bytes_per_read)) {
    parts_.resize(parts);
    pieces_.resize(pieces);
    if (last) pieces_.back() = *last;
    payload_bytes_ = payload;
    tail_bytes_ = tail;
    block_entries_ = with_entries;
    return false;
  }
  tail_bytes_ += sample.key.size() + sizeof(record_head) + 2 * alignof(record_head);
  planned_.push_back({position, number, sample, parts, parts_.size()});
  return true;
}

MILLRACE_INLINE void indexed_reader::add_part(std::uint32_t number, const indexed_member& member) {
  const auto size = static_cast<std::size_t>(member.size_bytes);
  if (pieces_.empty() || member.offset_bytes < pieces_.back().offset_bytes + pieces_.back().size ||
      member.offset_bytes - pieces_.back().offset_bytes - pieces_.back().size > options_.largest_gap_bytes)
    pieces_.push_back({member.offset_bytes, aligned(payload_bytes_, alignment), 0, parts_.size()});
  piece& last = pieces_.back();
  const auto before = static_cast<std::size_t>(member.offset_bytes - last.offset_bytes);   // in the file
  const std::size_t at = gap_.empty() ? last.at + before : place_of(member, last);
  last.size = before + size;
  payload_bytes_ = at + size;
  parts_.push_back({number, member.offset_bytes, at, size});
}

MILLRACE_INLINE std::size_t indexed_reader::place_of(const indexed_member& member, const piece& in) const noexcept {
  if (parts_.size() > in.first_part) {
    const part& previous = parts_.back();
    const auto distance = static_cast<std::size_t>(member.offset_bytes - previous.offset_bytes);
    if (distance <= previous.size + previous.size / 4) return previous.at + distance;
  }
  return aligned(payload_bytes_, alignment);
}

MILLRACE_INLINE void indexed_reader::finish_block() {
  try {
    fill_block();
  } catch (...) {
    std::size_t first = planned_.front().position;
    for (const auto& sample : planned_) first = std::min(first, sample.position);
    record_failure(first, std::current_exception());
  }
  begin_block();
}

MILLRACE_INLINE void indexed_reader::fill_block() {
  auto block = pool_->take(payload_bytes_ + tail_bytes_ + 2 * alignment + entries_table_bytes(block_entries_));
  std::byte* const base = block.get()->data();
  const std::size_t lead = (alignment - reinterpret_cast<std::uintptr_t>(base) % alignment) % alignment;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const piece& p = pieces_[i];
    const std::size_t got = read_piece(i, base + lead);
    ++counters_.reads;
    counters_.read_bytes += got;
    if (got < p.size)
      throw lost_shard_error("the shard ends at this offset: got a smaller size than when its index was built",
                             "Shards must not change while they are read: copy or download it again",
                             where({}, p.offset_bytes + got));
  }
  std::size_t at = lead + payload_bytes_;
  const std::string_view shard = source_->name();
  const std::size_t shard_at = put(base, at, shard);
  const std::size_t tail_end = lead + payload_bytes_ + tail_bytes_;
  std::size_t previous_head_at = 0, fetched = at;
  for (const block_sample& planned : planned_) {
    // The reads of the payloads have evicted this memory from the CPU's cache.
    for (const std::size_t end = std::min(at + prefetch_bytes, tail_end); fetched < end; fetched += alignment)
      __builtin_prefetch(base + fetched, 1);
    const indexed_sample& sample = planned.entry;
    record_head head{.key_at = put(base, at, sample.key),
                     .key_size = sample.key.size(),
                     .shard_at = shard_at,
                     .shard_size = shard.size(),
                     .fields_at = 0,
                     .field_count = planned.end_part - planned.first_part,
                     .offset_bytes = sample.offset_bytes,
                     .head_at = 0,
                     .held_bytes = block.get()->capacity_bytes / planned_.size()};
    for (std::size_t i = planned.first_part; i < planned.end_part; ++i) name_field(base, at, parts_[i].member);
    at = head.fields_at = aligned(at, alignof(record_head));
    std::exception_ptr mismatch;
    for (std::size_t i = planned.first_part; i < planned.end_part; ++i) {
      part& p = parts_[i];
      const field_state& field = fields_[index_->field_of(p.member)];
      const field_entry entry{field.name_at, field.name.size(), lead + p.at, p.size};
      std::memcpy(base + at, &entry, sizeof entry);
      at += sizeof entry;
      counters_.payload_bytes += p.size;
      const check_result payload = check(planned.number, p.member, {base + lead + p.at, p.size});
      head.checksums = combine_keys(head.checksums, payload.checksum);
      if (payload.mismatch) mismatch = mismatch ? mismatch : payload.mismatch;
      else p.checksum = payload.checksum;
    }
    head.head_at = at;
    std::memcpy(base + at, &head, sizeof head);
    const auto* stored_head = reinterpret_cast<const record_head*>(base + at);
    if (previous_head_at == 0) block.get()->head = stored_head;
    else reinterpret_cast<record_head*>(base + previous_head_at)->next_at = at;
    previous_head_at = at;
    at += sizeof head;
    ++counters_.samples;
    if (mismatch) record_failure(planned.position, mismatch);
    else records_[planned.position] = record(stored_head);
  }
  if (block_entries_ > 0) fill_entries(*block.get(), lead, at);
}

MILLRACE_INLINE std::size_t indexed_reader::read_piece(std::size_t number, std::byte* payloads) {
  const piece& p = pieces_[number];
  if (gap_.empty()) return read_fully(*source_, p.offset_bytes, std::span(payloads + p.at, p.size));
  places_.clear();
  const std::size_t end = number + 1 < pieces_.size() ? pieces_[number + 1].first_part : parts_.size();
  for (std::size_t i = p.first_part; i < end; ++i) {
    const part& first = parts_[i];
    const auto distance = [this](std::size_t n) { return parts_[n + 1].offset_bytes - parts_[n].offset_bytes; };
    while (i + 1 < end && parts_[i + 1].at - parts_[i].at == distance(i)) ++i;   // both are adjacent in memory, too
    const part& here = parts_[i];
    const std::size_t gap = i + 1 < end ? static_cast<std::size_t>(distance(i)) - here.size : 0;
    // A gap is read with the payload before it, and then overwritten. This halves the number of buffers.
    const bool together = gap <= gap_.size() && here.at + here.size + gap <= payload_bytes_;
    if (const std::size_t size = here.at - first.at + here.size + (together ? gap : 0); size > 0)
      places_.emplace_back(payloads + first.at, size);
    for (std::size_t left = together ? 0 : gap; left > 0; left -= places_.back().size())
      places_.push_back(std::span(gap_).first(std::min(gap_.size(), left)));
  }
  return read_fully(*source_, p.offset_bytes, std::span(places_));
}

MILLRACE_INLINE void indexed_reader::add_entries(std::uint32_t member) {
  const auto size = static_cast<std::size_t>(index_->entries().range_of(member).size_bytes);
  tail_bytes_ += size;
  block_entries_ += size > 0;
}

MILLRACE_INLINE void indexed_reader::fill_entries(block& to, std::size_t lead, std::size_t at) {
  with_entries_.clear();
  const entry_table& table = index_->entries();
  for (std::size_t first = 0, end = 0; first < parts_.size(); first = end) {
    const byte_range range = table.range_of(parts_[first].member);
    end = first + 1;
    if (range.size_bytes == 0) continue;
    byte_range all = range;
    for (; end < parts_.size(); ++end) {
      const byte_range next = table.range_of(parts_[end].member);
      if (next.offset_bytes != all.offset_bytes + all.size_bytes) break;
      all.size_bytes += next.size_bytes;
    }
    const std::span<std::byte> destination(to.data() + at, static_cast<std::size_t>(all.size_bytes));
    at += destination.size();
    std::size_t got = 0;
    try {
      got = read_fully(*entries_, all.offset_bytes, destination);
    } catch (const error&) {   // the payloads can be used without entries
    }
    check_entries({first, end, lead}, to, destination.first(got));
  }
  put_entries_table(to, at, with_entries_);
}

MILLRACE_INLINE void indexed_reader::check_entries(const run_of_parts& parts, block& to,
                                                   std::span<const std::byte> read) {
  const entry_table& table = index_->entries();
  for (std::size_t i = parts.first; i < parts.end; ++i) {
    const part& p = parts_[i];
    const auto size = static_cast<std::size_t>(table.range_of(p.member).size_bytes);
    if (size == 0) continue;
    const auto stored = read.first(std::min(size, read.size()));
    read = read.subspan(stored.size());
    std::uint32_t expected = 0;
    bool right = stored.size() == size;
    if (right) {
      const auto entries = stored.subspan(entry_table::checksum_bytes);
      std::memcpy(&expected, stored.data(), sizeof expected);
      const std::byte* const payload = to.data() + parts.lead + p.at;
      right = crc32c(entries, p.checksum != 0 ? p.checksum : crc32c({payload, p.size})) == expected;
      if (right)
        with_entries_.push_back(
            {parts.lead + p.at, p.size, static_cast<std::size_t>(entries.data() - to.data()), entries.size()});
    }
    ++(right ? counters_.with_entries : counters_.entries_refused);
  }
}

MILLRACE_INLINE void indexed_reader::read_alone(std::size_t position, std::uint32_t number) {
  try {
    // This reader reads all headers, because some are valid only after the previous headers.
    part_of_shard alone{.number = number, .offset_bytes = index_->sample(number).offset_bytes};
    if (index_->state() == shard_index::shard_state::damaged) alone.end_bytes = index_->facts().damage_offset_bytes;
    auto sample = reader_of(alone).next();
    if (!sample || sample->key() != index_->sample(number).key)
      throw data_error("the shard has changed since its index was built: it has a different sample at this offset",
                       "Remove the index and start the run again; do not change shards during a run",
                       where(index_->sample(number).key, index_->sample(number).offset_bytes));
    std::size_t field = 0;
    std::uint64_t checksums = 0;
    const indexed_sample entry = index_->sample(number);
    for (std::uint32_t m = entry.first_member; m < entry.end_member && field < sample->field_count(); ++m) {
      if (!fields_[index_->field_of(m)].selected) continue;
      counters_.payload_bytes += sample->field(field).size();
      const check_result payload = check(number, m, sample->field(field++));
      checksums = combine_keys(checksums, payload.checksum);
      if (payload.mismatch) return record_failure(position, payload.mismatch);
    }
    sample->set_checksums(checksums);
    ++counters_.samples;
    records_[position] = std::move(*sample);
  } catch (...) {
    record_failure(position,
                   is_cut_before_end_of(number) ? as_lost_shard(std::current_exception()) : std::current_exception());
  }
}

MILLRACE_INLINE bool indexed_reader::is_cut_before_end_of(std::uint32_t number) noexcept {
  const indexed_sample sample = index_->sample(number);
  if (sample.first_member == sample.end_member) return false;
  const indexed_member last = index_->member(sample.end_member - 1);
  if (last.size_bytes == 0) return false;
  try {
    std::byte one{};
    return read_fully(*source_, last.offset_bytes + last.size_bytes - 1, {&one, 1}) == 0;
  } catch (const io_error&) {
    return false;
  }
}

MILLRACE_INLINE shard_reader indexed_reader::reader_of(const part_of_shard& p) {
  return open_shard_at({.offset_bytes = p.offset_bytes,
                        .samples_before = p.number,
                        .last_key = p.number == 0 ? std::string() : std::string(index_->sample(p.number - 1).key),
                        .sidecars = options_.sidecars},
                       std::unique_ptr<byte_source>(new borrowed_byte_source(*source_, p.end_bytes)), *pool_,
                       {.fields = options_.fields, .limits = options_.limits, .strict = p.strict});
}

MILLRACE_INLINE indexed_reader::check_result indexed_reader::check(std::uint32_t number, std::uint32_t member,
                                                                   std::span<const std::byte> payload) {
  if (!options_.checksums || payload.empty()) return {};
  const std::uint32_t checksum = crc32c(payload);
  std::uint32_t expected = index_->checksum(member);
  ++(expected == 0 ? counters_.checksums_learned : counters_.checksums_checked);
  if (expected == 0) expected = index_->learn_checksum(member, checksum);
  if (checksum == expected) return {.checksum = checksum};
  const indexed_member m = index_->member(member);
  const data_error changed(
      "the sample was changed: got the CRC-32C 0x" + hex(checksum, 8) + " of its field '" + printable(m.field) +
          "', expected 0x" + hex(expected, 8) + ", which it had when it was first read",
      "Copy or download the shard again, or remove its index if the new bytes are correct",
      where(index_->sample(number).key, m.in_one_piece ? m.offset_bytes : index_->sample(number).offset_bytes));
  return {checksum, exception_of(changed)};
}

MILLRACE_INLINE void indexed_reader::record_failure(std::size_t position, std::exception_ptr error) {
  if (position >= failed_at_) return;
  failed_at_ = position;
  failure_ = std::move(error);
}

MILLRACE_INLINE error_location indexed_reader::where(std::string_view key, std::uint64_t offset_bytes) const {
  return {.stage = "tar", .shard = std::string(source_->name()), .key = std::string(key), .offset_bytes = offset_bytes};
}

}}}   // namespace millrace::detail
