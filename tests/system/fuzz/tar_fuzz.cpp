// A libFuzzer target: tar archives. Our reader must return libarchive's members, and refuse an archive only if
// libarchive does or a documented rule requires it. The plain reader must agree, samples must match a slow grouping,
// and an index must return the same samples as reading the shard. fuzz.py builds and runs it.
#include <millrace/io/tar/read/plain_tar.hpp>
#include <millrace/io/tar/read/tar_reader.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>

#include "../../unit/io/tar_bytes.hpp"
#include "fuzz_target.hpp"
#include "tar_mutator.hpp"

#include <cctype>
#include <vector>

#include <archive_entry.h>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;

constexpr std::uint64_t max_payload = 64 << 10;

struct member {
  std::string name{};
  std::uint64_t size = 0, offset = 0, payload_at = 0;
  bool regular = false, sparse = false;
  std::string payload{};
};

/// The members up to the end or an error; the last one may have no payload.
struct listing {
  std::vector<member> members{};
  std::string error{};
  bool in_payload = false;      // the error occurred in the last member's payload
  bool without_marker = false, compressed = false;
};

mr::block_pool& pool() { return tar_test::shared_pool(); }

listing by_tar_reader(std::unique_ptr<mr::byte_source> source, std::uint64_t start = 0) {
  listing all;
  try {
    mr::detail::tar_reader tar(std::move(source), pool(), {.start_bytes = start});
    all.compressed = tar.compressed();
    while (const auto m = tar.next()) {
      all.members.push_back({std::string(m->name), m->size_bytes, m->offset_bytes, m->payload_offset_bytes, m->regular,
                             m->sparse, {}});
      if (!m->regular || m->size_bytes > max_payload) continue;
      std::string& payload = all.members.back().payload;
      payload.assign(static_cast<std::size_t>(m->size_bytes), '?');
      all.in_payload = true;
      tar.read(std::as_writable_bytes(std::span(payload)));
      all.in_payload = false;
    }
    all.without_marker = tar.ended_without_marker();
  } catch (const mr::data_error& e) {
    all.error = e.message();
    slow::expect(!all.error.empty() && e.where().shard == "input", "an error without a text or a place");
  }
  return all;
}

listing by_libarchive(std::span<const std::byte> tar) {
  listing all;
  const auto handle = mr::detail::open_archive_reader();
  ::archive_read_support_format_tar(handle.get());
  ::archive_read_set_format_option(handle.get(), "tar", "mac-ext", nullptr);
  const auto failed = [&](int result) {
    const std::string text = mr::detail::archive_text(handle.get());
    if (result == ARCHIVE_OK || (result == ARCHIVE_WARN && text.find("can't be converted") != std::string::npos))
      return false;
    all.error = result == ARCHIVE_EOF ? "" : "libarchive: " + text;
    return true;
  };
  if (failed(::archive_read_open_memory(handle.get(), tar.data(), tar.size()))) return all;
  for (;;) {
    struct ::archive_entry* entry = nullptr;
    if (failed(::archive_read_next_header(handle.get(), &entry))) return all;
    const char* name = ::archive_entry_pathname(entry);
    member m{.name = name ? name : "", .size = static_cast<std::uint64_t>(::archive_entry_size(entry)),
             .regular = ::archive_entry_filetype(entry) == AE_IFREG && !::archive_entry_hardlink(entry),
             .sparse = ::archive_entry_sparse_count(entry) > 0};
    const bool read = m.regular && m.size <= max_payload;
    if (read) m.payload.assign(static_cast<std::size_t>(m.size), '\0');
    all.members.push_back(m);
    all.in_payload = true;
    for (const void* data = nullptr;;) {
      std::size_t size = 0;
      ::la_int64_t at = 0;
      if (!read) {
        if (failed(::archive_read_data_skip(handle.get()))) return all;
        break;
      }
      const int result = ::archive_read_data_block(handle.get(), &data, &size, &at);
      if (result == ARCHIVE_EOF) break;
      if (failed(result)) return all;
      std::string& payload = all.members.back().payload;
      // It may return more than the size in the header; tar_reader reports that as damage.
      if (static_cast<std::uint64_t>(at) + size > payload.size()) {
        all.error = "a payload that does not fit";
        return all;
      }
      if (size > 0) std::memcpy(payload.data() + at, data, size);
    }
    all.in_payload = false;
  }
}

/// The rules of tar_reader.hpp and tar_fields.hpp that refuse archives that libarchive accepts.
bool is_our_rule(const std::string& error) {
  for (const char* rule :
       {"has data after an end marker", "more than 16 MiB of zeros",
        "has a global pax header that is damaged or truncated",
        "has an extended header here, but no member after it",
        "has a payload that does not match its declared size", "has a payload of the wrong size: got ",
        "has a member of negative size", "has a file without a name",
        "has a member without a readable name", "the shard is empty", "has a payload that ends inside a block"})
    if (error.find(rule) != std::string::npos) return true;
  return false;
}

/// GNU headers of files that are not sparse may have star's time where libarchive expects a size.
bool may_differ_in_size(std::span<const std::byte> tar, const member& m) {
  const mr::detail::tar_header_chain headers(slow::text_of(tar).substr(static_cast<std::size_t>(m.offset)));
  const std::string_view header = headers.main();
  if (header.empty()) return false;
  return header.substr(257, 8) == std::string_view("ustar  \0", 8) && header[156] != 'S' && header[483] != '\0';
}

bool only_a_part_of_the_marker(std::span<const std::byte> tar, const listing& ours) {
  const auto rest = tar.size() % 512;
  return ours.without_marker && rest > 0 &&
         slow::text_of(tar.last(rest)).find_first_not_of('\0') == std::string_view::npos;
}

void compare_with_libarchive(std::span<const std::byte> tar, const listing& ours) {
  const listing theirs = by_libarchive(tar);
  const std::size_t both = std::min(ours.members.size(), theirs.members.size());
  bool sizes_differ = false;
  for (std::size_t i = 0; i < both && !sizes_differ; ++i) {
    const member &a = ours.members[i], &b = theirs.members[i];
    const std::string where = "member " + std::to_string(i) + ", " + mr::printable(a.name) + ": ";
    if (a.name != b.name) slow::fail(where + "libarchive calls it " + mr::printable(b.name));
    if (a.regular != b.regular) slow::fail(where + "another kind than by libarchive");
    sizes_differ = a.size != b.size;
    if (sizes_differ && !may_differ_in_size(tar, a))
      slow::fail(where + std::to_string(a.size) + " bytes, by libarchive " + std::to_string(b.size));
    const bool last = i + 1 == both;
    const bool complete = !last || (!ours.in_payload && !theirs.in_payload);
    if (!sizes_differ && complete && a.payload != b.payload) slow::fail(where + "another payload than by libarchive");
  }
  if (sizes_differ) return;
  if (ours.error.empty()) {
    if (!theirs.error.empty() && !only_a_part_of_the_marker(tar, ours)) slow::fail("accepted; " + theirs.error);
    if (ours.members.size() != theirs.members.size())
      slow::fail(std::to_string(ours.members.size()) + " members, by libarchive " +
                  std::to_string(theirs.members.size()));
  } else if (!is_our_rule(ours.error)) {
    if (theirs.error.empty()) slow::fail("refused: " + ours.error + "; not by libarchive");
    if (ours.members.size() != theirs.members.size())
      slow::fail("refused: " + ours.error + " after " + std::to_string(ours.members.size()) +
                  " members, by libarchive after " + std::to_string(theirs.members.size()));
  }
}

/// Where plain_tar returns a member or the end, tar_reader agrees.
void compare_with_plain_tar(std::span<const std::byte> tar, const listing& ours) {
  slow::span_source source(tar);
  mr::detail::plain_tar plain(source, pool());
  for (std::size_t i = 0;; ++i) {
    switch (plain.next()) {
      case mr::detail::plain_tar::result::odd: return;
      case mr::detail::plain_tar::result::end:
        if (i != ours.members.size() || !ours.error.empty() || ours.without_marker)
          slow::fail("the plain reader ends without an error after " + std::to_string(i) + " members; tar_reader: " +
                      std::to_string(ours.members.size()) + " " + ours.error);
        return;
      case mr::detail::plain_tar::result::member: break;
    }
    const auto& a = plain.member();
    if (i >= ours.members.size()) slow::fail("the plain reader has another member; tar_reader: " + ours.error);
    const member& b = ours.members[i];
    if (a.name != b.name || a.regular != b.regular || a.offset_bytes != b.offset ||
        (a.regular && (a.size_bytes != b.size || a.payload_offset_bytes != b.payload_at || b.sparse)))
      slow::fail("the plain reader has " + mr::printable(a.name) + ", " + std::to_string(a.size_bytes) + " bytes at " +
                  std::to_string(a.offset_bytes) + "; tar_reader has " + mr::printable(b.name) + ", " +
                  std::to_string(b.size) + " at " + std::to_string(b.offset));
  }
}

/// The key of a member by WebDataset's rules; nothing if it belongs to no sample.
std::optional<std::string> key_of(const member& m) {
  const std::string first = m.name.substr(0, m.name.find('/'));
  const std::string base = m.name.substr(m.name.rfind('/') + 1);   // npos + 1 is 0
  if (!m.regular || base.empty() || base[0] == '.' || base.find('.') == std::string::npos) return std::nullopt;
  if (first.size() >= 4 && first.substr(0, 2) == "__" && first.substr(first.size() - 2) == "__") return std::nullopt;
  return m.name.substr(0, m.name.size() - base.size() + base.find('.'));
}

void compare_samples(const tar_test::outcome& by_shard, const listing& ours) {
  std::vector<std::string> keys;
  for (const member& m : ours.members)
    if (const auto key = key_of(m); key && (keys.empty() || keys.back() != *key)) keys.push_back(*key);
  const bool no_error = by_shard.error.empty();
  // Members outside samples are skipped without reading their payload.
  const bool passed_over = ours.in_payload && !key_of(ours.members.back());
  if (no_error && !ours.error.empty() && !passed_over)
    slow::fail("the samples have no error, but the members: " + ours.error);
  if (passed_over) return;
  slow::expect(no_error ? by_shard.samples.size() == keys.size() : by_shard.samples.size() <= keys.size(),
               "another number of samples than by a slow grouping");
  for (std::size_t i = 0; i < by_shard.samples.size(); ++i)
    slow::expect(by_shard.samples[i].starts_with(keys[i] + ":"), "another key than by a slow grouping");
}

/// Whether a hard link has a payload depends on previous headers in libarchive, which are unavailable when reading
/// starts in the middle of a shard.
bool has_link_with_payload(std::span<const std::byte> tar) {
  const std::string_view all = slow::text_of(tar);
  for (std::size_t at = 0; at + 512 <= all.size(); at += 512)
    if (all[at + 156] == '1' && mr::detail::tar_size(all.substr(at + 124, 12)) != std::uint64_t{0}) return true;
  return false;
}

void compare_from_the_middle(std::span<const std::byte> tar, const listing& ours, std::size_t from) {
  const listing tail = by_tar_reader(std::make_unique<slow::span_source>(tar), ours.members[from].offset);
  slow::expect(tail.error.empty() && tail.members.size() == ours.members.size() - from,
               "from the middle of the shard there are other members");
  for (std::size_t i = 0; i < tail.members.size(); ++i) {
    const member &a = tail.members[i], &b = ours.members[from + i];
    slow::expect(a.name == b.name && a.payload == b.payload && a.offset == b.offset,
                 "from the middle of the shard a member is another");
  }
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  const temporary_folder folder;
  for (int i = 0; i < 8; ++i) {
    mr::shard_writer shards({.pattern = folder / "%d.tar"});
    for (int s = 0; s <= i % 3; ++s)
      shards.write(std::string(i == 3 ? 120 : 1, 'n') + "/" + std::string(i == 5 ? 250 : 1, 'k') + std::to_string(s),
                   {{"cls", "7"}, {"jpg", std::string(i == 2 ? 700 : 9, 'x')},
                    {i == 6 ? "gr\xc3\xbc" "n" : "txt", ""}});
    static_cast<void>(shards.close());
    seeds.add(tar_test::load(shards.path_of(0)));
  }
  for (const auto make : {tar_test::file, tar_test::pax_file, tar_test::gnu_long_name}) {
    const tar_test::small_shard small(make);
    seeds.add(small.bytes());
    seeds.add(small.members[0] + small.members[1] + tar_test::end_marker());
    seeds.add(small.members[0] + tar_test::end_marker() + small.members[1]);
    seeds.add(small.members[0] + small.members[2].substr(0, 900));
  }
  mr::rng d({.seed = 1});
  tar_mutator mutator(d, [](std::uint8_t*, std::size_t size, std::size_t) { return size; });
  for (int i = 0; i < 200; ++i) {
    std::string tar;
    for (int k = 0; k < 12; ++k) mutator.change(tar);
    tar.resize(std::min<std::size_t>(tar.size(), 8192));
    seeds.add(d.chance(0.7) ? tar + tar_test::end_marker() : tar);
  }
}

void slow::check(std::span<const std::byte> input, draw choose) {
  if (looks_compressed(text_of(input))) return;
  const std::size_t piece = choose.one_in(16) ? 1 + choose.below(700) : ~std::size_t{0};
  const listing ours = by_tar_reader(std::make_unique<span_source>(input, piece));
  counters().count(ours.error.empty());
  expect(!ours.compressed, "treated as compressed");
  compare_with_plain_tar(input, ours);
  if (choose.one_in(4)) compare_with_libarchive(input, ours);
  if (has_link_with_payload(input)) return;
  if (choose.one_in(8)) {
    const mr::shard_reader_options options{.fields = {}, .limits = {.max_member_bytes = max_payload}};
    const tar_test::outcome expected = tar_test::read_source(std::make_unique<span_source>(input), options);
    compare_samples(expected, ours);
    tar_test::memory_source source(std::string(text_of(input)), {.in_parts = choose.one_in(2)});
    if (auto indexed = tar_test::read_by_index(source, options)) {
      // Without the previous headers, libarchive may report another error for a damaged header, and later.
      if (!expected.error.empty() && !indexed->error.empty()) {
        indexed->message = expected.message;
        indexed->where = expected.where;
      }
      const std::string gap = tar_test::difference(expected, *indexed);
      if (!gap.empty()) fail("an index differs" + gap);
    }
  }
  // In a damaged shard, libarchive may remember values of a damaged header.
  if (ours.error.empty() && !ours.members.empty() && choose.one_in(16))
    compare_from_the_middle(input, ours, choose.below(ours.members.size()));
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::string tar(reinterpret_cast<const char*>(data), size);
  mr::rng d({.seed = seed});
  slow::tar_mutator(d, LLVMFuzzerMutate).change(tar);
  const std::size_t length = std::min(tar.size(), max_size);
  if (length > 0) std::memcpy(data, tar.data(), length);
  return length;
}
