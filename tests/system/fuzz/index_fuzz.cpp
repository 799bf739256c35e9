// A libFuzzer target: the file of an index. The library must accept it if and only if a slow reader of the documented
// layout does. Then all entries are inside the shard, and writing the index produces the same file. fuzz.py builds and
// runs it.
//
// The first byte of the input selects which marks, sizes and checksums are repaired, so that mutations reach later
// checks. fuzz.py limits allocations, because a file of some kilobytes never needs a large one.
#include <millrace/base/crc32c.hpp>
#include <millrace/io/index/entries/entries_build.hpp>
#include <millrace/io/index/format/index_file.hpp>
#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/io/index/read/indexed_reader.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>

#include "../../temporary_folder.hpp"
#include "fuzz_target.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <sys/mman.h>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;
using state = mr::detail::index_file_state;
using file_bytes = std::vector<std::byte>;

constexpr std::size_t head_bytes = 136, counts_at = 96, state_at = 120;
constexpr std::size_t second_head_bytes = 16;   // of an index with entry points

template <class T>
T number(const file_bytes& file, std::size_t at) {
  T value{};
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

template <class T>
void put(file_bytes& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

/// The layout of index_format.hpp, read at fixed offsets.
struct slow_index {
  __extension__ using wide = unsigned __int128;

  const file_bytes& file;
  std::size_t samples, members, fields, key_bytes, field_bytes, damage_bytes;

  explicit slow_index(const file_bytes& f)
      : file(f), samples(count(0)), members(count(1)), fields(count(2)), key_bytes(count(3)), field_bytes(count(4)),
        damage_bytes(count(5)) {}

  std::size_t count(std::size_t i) const { return number<std::uint32_t>(file, counts_at + 4 * i); }
  std::uint64_t shard_bytes() const { return number<std::uint64_t>(file, 16); }
  bool has_entries() const { return number<std::uint32_t>(file, 12) == 2 && file.size() >= columns_at_with_entries; }
  std::uint64_t entry_bytes() const { return has_entries() ? number<std::uint64_t>(file, head_bytes) : 0; }
  std::size_t columns_at() const { return has_entries() ? columns_at_with_entries : head_bytes; }
  std::size_t text_at() const { return columns_at() + 4 * (3 * samples + 4 * members + fields); }
  std::uint64_t ends_at() const { return (text_at() + key_bytes + field_bytes + damage_bytes + 3) / 4 * 4; }
  std::uint64_t entries_at() const { return ends_at() + (has_entries() ? 4 * members : 0); }
  wide right_bytes() const { return wide{entries_at()} + entry_bytes(); }
  static constexpr std::size_t columns_at_with_entries = head_bytes + second_head_bytes;

  /// The checksum of the second head, over the first head's checksum and all bytes before.
  std::uint32_t second_checksum() const {
    const auto all = std::span(file);
    return mr::crc32c(all.subspan(head_bytes, 12), mr::crc32c(all.subspan(head_bytes - 4, 4)));
  }

  /// Entry i of a column, which begins after the previous column.
  std::uint32_t at(std::size_t column, std::size_t i) const {
    const std::size_t before = column < 3 ? column * samples : 3 * samples + (column - 3) * members;
    return number<std::uint32_t>(file, columns_at() + 4 * (before + i));
  }

  bool head_holds() const {
    const std::uint32_t kind = number<std::uint32_t>(file, state_at);
    const std::uint64_t damage = number<std::uint64_t>(file, 40), resume = number<std::uint64_t>(file, 48);
    return (kind == 0 || kind == 1 || kind == 3) && samples <= members && members <= shard_bytes() / 512 &&
           fields <= members && key_bytes <= shard_bytes() && field_bytes <= shard_bytes() &&
           damage_bytes <= 1U << 20 && damage <= shard_bytes() && resume <= shard_bytes() && resume % 512 == 0 &&
           entry_bytes() <= 0xffffffff && file.size() == right_bytes();
  }

  bool entries_hold() const {
    std::uint64_t before = 0;
    for (std::size_t m = 0; m < members; ++m) {
      const std::uint64_t end = number<std::uint32_t>(file, static_cast<std::size_t>(ends_at()) + 4 * m);
      if (end < before || (end > before && (end < before + 5 || at(3, m) == 0xffffffff || end - before - 4 > at(4, m))))
        return false;
      before = end;
    }
    return before == entry_bytes();
  }

  bool columns_hold() const {
    const auto rise = [&](std::size_t column, std::size_t entries, std::size_t last, std::size_t step) {
      std::uint64_t before = 0;
      for (std::size_t i = 0; i < entries; ++i) {
        if (at(column, i) < before + step) return false;
        before = at(column, i);
      }
      return before == last;
    };
    if (!rise(1, samples, key_bytes, 0) || !rise(2, samples, members, 1) || !rise(7, fields, field_bytes, 0))
      return false;
    for (std::size_t s = 0; s < samples; ++s) {
      if (512 * (wide{at(0, s)} + 1) > shard_bytes()) return false;
      if (s > 0 && at(0, s) <= at(0, s - 1)) return false;
    }
    wide end = 0;   // payloads follow each other
    for (std::size_t m = 0; m < members; ++m) {
      if (at(5, m) >= fields) return false;
      if (at(3, m) == 0xffffffff) continue;
      const wide begin = 512 * wide{at(3, m)};
      if (begin < end || begin + at(4, m) > shard_bytes()) return false;
      end = begin + at(4, m);
    }
    return true;
  }

  state state_for(const mr::detail::shard_identity& shard) const {
    const auto crc = [&](std::size_t begin, std::size_t end) {
      return mr::crc32c(std::span(file).subspan(begin, end - begin));
    };
    if (slow::text_of(file).substr(0, 8) != "MR-INDEX") return state::damaged;
    if (number<std::uint32_t>(file, 8) != 0x01020304 || number<std::uint32_t>(file, 12) - 1 > 1) return state::stale;
    if (number<std::uint32_t>(file, head_bytes - 4) != crc(0, head_bytes - 4)) return state::damaged;
    if (shard_bytes() != shard.size_bytes) return state::stale;
    if (number<std::uint32_t>(file, 12) == 2 &&
        (!has_entries() || number<std::uint32_t>(file, head_bytes + 12) != second_checksum()))
      return state::damaged;
    if (!head_holds() ||
        number<std::uint32_t>(file, head_bytes - 12) != crc(columns_at(), static_cast<std::size_t>(ends_at())) ||
        !columns_hold())
      return state::damaged;
    if (has_entries() && (number<std::uint32_t>(file, head_bytes + 8) !=
                              crc(static_cast<std::size_t>(ends_at()), static_cast<std::size_t>(entries_at())) ||
                          !entries_hold()))
      return state::damaged;
    return number<std::int64_t>(file, 24) == shard.modified_ns ? state::good : state::touched;
  }
};

/// A file in memory with replaceable content.
class memory_file {
 public:
  memory_file() : file_(::memfd_create("index", MFD_CLOEXEC)) { slow::expect(bool(file_), "no memfd"); }

  const mr::detail::unique_fd& with(const file_bytes& bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    slow::expect(::pwrite(file_.get(), bytes.data(), bytes.size(), 0) == size, "cannot write to memory");
    if (size_ > size) slow::expect(::ftruncate(file_.get(), size) == 0, "cannot shorten memory");
    size_ = size;
    return file_;
  }

 private:
  mr::detail::unique_fd file_;
  ssize_t size_ = 0;
};

mr::detail::loaded_index load(const file_bytes& file, const mr::detail::shard_identity& shard) {
  static memory_file memory;
  return mr::detail::load_open_index(memory.with(file), "input", shard);
}

void make_right(file_bytes& file, unsigned knob) {
  if (file.size() < head_bytes) return;
  if ((knob & 1) != 0) {
    std::memcpy(file.data(), "MR-INDEX", 8);
    put(file, 8, std::uint32_t{0x01020304});
    put(file, 12, std::uint32_t{number<std::uint32_t>(file, 12) == 2 ? 2U : 1U});
  }
  if ((knob & 2) != 0 && slow_index(file).right_bytes() <= 8192)
    file.resize(static_cast<std::size_t>(slow_index(file).right_bytes()));
  const slow_index now(file);
  const auto part = [&](std::uint64_t begin, std::uint64_t end) {
    const std::size_t from = std::min<std::size_t>(file.size(), static_cast<std::size_t>(begin));
    return std::span(file).subspan(from, std::min(file.size(), static_cast<std::size_t>(end)) - from);
  };
  if ((knob & 4) != 0) put(file, head_bytes - 12, mr::crc32c(part(now.columns_at(), now.ends_at())));
  if ((knob & 4) != 0 && now.has_entries())
    put(file, head_bytes + 8, mr::crc32c(part(now.ends_at(), now.entries_at())));
  if ((knob & 8) != 0) put(file, head_bytes - 4, mr::crc32c(std::span(file).first(head_bytes - 4)));
  if ((knob & 8) != 0 && now.has_entries()) put(file, head_bytes + 12, now.second_checksum());
}

/// All positions in an index must be inside the shard and the index.
void walk(const mr::detail::shard_index& index) {
  const std::uint64_t shard_bytes = index.identity().size_bytes;
  std::uint64_t next_sample = 0;
  std::uint32_t next_member = 0;
  std::uint32_t letters = 0;   // reads every byte, for AddressSanitizer
  const auto add_text = [&](std::string_view text) { letters = mr::crc32c(mr::detail::bytes_of(text), letters); };
  for (std::uint32_t s = 0; s < index.samples(); ++s) {
    const auto sample = index.sample(s);
    slow::expect(sample.offset_bytes >= next_sample && sample.offset_bytes + 512 <= shard_bytes, "sample outside");
    slow::expect(sample.first_member == next_member && sample.end_member > next_member, "members not in a row");
    next_sample = sample.offset_bytes + 512;
    next_member = sample.end_member;
    add_text(sample.key);
    for (std::uint32_t m = sample.first_member; m < sample.end_member; ++m) {
      const auto member = index.member(m);
      slow::expect(!member.in_one_piece || (member.offset_bytes <= shard_bytes &&
                                            member.size_bytes <= shard_bytes - member.offset_bytes), "member outside");
      add_text(member.field);
    }
  }
  slow::expect(next_member == index.members(), "members of no sample");
  add_text(index.damage());
}

/// A valid index of another shard: reading ends with samples or an error. Entries are stored in `file`, and are
/// returned only if their checksum matches.
void read_zeros_by(mr::detail::shard_index& index, const file_bytes& file) {
  static mr::block_pool pool;
  static const file_bytes zeros(4096);
  slow::span_source source(zeros);
  slow::span_source entries(file);
  mr::detail::indexed_reader reader(source, index, pool,
                                    {.fields = {}, .limits = {.max_member_bytes = 4096}, .bytes_per_read = 4096},
                                    &entries);
  std::vector<std::uint32_t> numbers(std::min<std::uint32_t>(index.samples(), 16));
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::vector<mr::record> records(numbers.size());
  try {
    const std::size_t good = reader.read(numbers, records);
    slow::expect(good == numbers.size() || reader.failure(), "fewer samples, and no error");
    for (const mr::record& r : std::span(records).first(good))
      for (const mr::bytes& field : r.fields()) {
        if (field.entries().empty()) continue;
        const std::uint32_t right = mr::crc32c(field.entries(), mr::crc32c(field));
        const auto before = std::as_bytes(std::span(&right, 1));
        file_bytes stored(before.begin(), before.end());
        stored.insert(stored.end(), field.entries().begin(), field.entries().end());
        slow::expect(std::search(file.begin(), file.end(), stored.begin(), stored.end()) != file.end(),
                     "entries that are not in the file");
      }
    if (good < numbers.size()) std::rethrow_exception(reader.failure());
  } catch (const mr::data_error&) {
  }
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  const temporary_folder folder;
  mr::block_pool pool;
  for (std::size_t i = 0; i < 12; ++i) {
    mr::shard_writer shards({.pattern = folder / "%d.tar"});
    for (std::size_t s = 0; s < i; ++s)
      shards.write("key" + std::string(s, 'k') + std::to_string(s),
                   {{"jpg", std::string_view("0123456789").substr(s % 8)}, {"cls", "7"},
                    {"f" + std::to_string(s % 3), ""}});
    static_cast<void>(shards.close());
    const std::string path = i == 0 ? folder / "none.tar" : shards.path_of(0);
    if (i == 0) std::ofstream(path) << std::string(1024, '\0');
    if (i % 4 == 3) std::filesystem::resize_file(path, std::filesystem::file_size(path) - (i % 8 == 3 ? 2000 : 1024));
    mr::file_source source(path);
    auto index = mr::detail::scan_shard(source, pool);
    index.identify(mr::detail::identify_shard(path));
    if (index.members() > 0) index.set_checksum(0, 4711);
    for (const char knob : {'\0', '\x0f'}) seeds.add(std::string(1, knob) + std::string(text_of(index_bytes(index))));
    const mr::storage local;
    const mr::detail::entry_maker half = [](std::string_view, std::span<const std::byte> payload) {
      return file_bytes(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(payload.size() / 2));
    };
    const auto entries = mr::detail::build_entries({.storage = local, .shard = path, .build = half}, index);
    file_bytes with = index_bytes(index);
    for (const auto& piece : entries.pieces) with.insert(with.end(), piece.begin(), piece.end());
    for (const char knob : {'\0', '\x0f'}) seeds.add(std::string(1, knob) + std::string(text_of(with)));
  }
}

void slow::check(std::span<const std::byte> input, draw choose) {
  const unsigned knob = take_knob(input);
  file_bytes file(input.begin(), input.end());
  make_right(file, knob);
  mr::detail::shard_identity shard{.size_bytes = 1 << 20, .modified_ns = 1};
  if (file.size() >= head_bytes && (knob & 0x30) != 0) {
    shard.size_bytes = number<std::uint64_t>(file, 16);
    if ((knob & 0x30) != 0x10) shard.modified_ns = number<std::int64_t>(file, 24);
  }
  auto loaded = load(file, shard);
  const bool accepted = loaded.state == state::good || loaded.state == state::touched;
  counters().count(accepted);
  const state right = file.empty() ? state::missing
                      : file.size() < head_bytes ? state::damaged : slow_index(file).state_for(shard);
  if (loaded.state != right)
    fail("state " + std::to_string(int(loaded.state)) + " (" + loaded.reason + "), expected " +
          std::to_string(int(right)));
  if (!accepted) return;
  walk(loaded.index);
  file_bytes again = mr::detail::index_bytes(loaded.index);
  // Writers count the checksums; readers do not need that count.
  put(again, head_bytes - 8, number<std::uint32_t>(file, head_bytes - 8));
  put(again, head_bytes - 4, number<std::uint32_t>(file, head_bytes - 4));
  file_bytes front(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(slow_index(file).entries_at()));
  if (slow_index(file).has_entries()) put(again, head_bytes + 12, number<std::uint32_t>(file, head_bytes + 12));
  if (again != front) fail("writing it produces another file");
  if (choose.one_in(4)) read_zeros_by(loaded.index, file);
}

/// Changes a number of the head or of a column, which most mutations would miss.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  constexpr std::size_t front = 1 + head_bytes;   // the knob and the head
  if (size < front || d.chance(0.3)) return LLVMFuzzerMutate(data, size, max_size);
  data[0] = static_cast<std::uint8_t>(d.chance(0.9) ? 0x2f : d.below(256));
  const std::size_t words = (size - front) / 4;
  const auto place = [&] {
    return words > 0 && d.chance(0.7) ? front + 4 * d.below(words) : 1 + 16 + 4 * d.below((head_bytes - 16) / 4);
  };
  for (std::uint64_t times = d.below(3) + 1; times > 0; --times) {
    static constexpr std::uint32_t edges[] = {0, 1, 0xffffffff, 0xfffffffe, 0x80000000, 512, 3, 1 << 20};
    const std::size_t at = place();
    std::uint32_t value = 0;
    std::memcpy(&value, data + (d.chance(0.3) ? place() : at), sizeof value);
    value = d.chance(0.3) ? edges[d.below(8)] : value + static_cast<std::uint32_t>(d.below(5)) - 2;
    std::memcpy(data + at, &value, sizeof value);
  }
  return size;
}
