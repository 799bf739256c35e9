// Contains all tables for decoding the blocks of a component with its two Huffman codes, and a cache of such tables.
//
//   mr::detail::component_table_store store;                               // in a worker's scratch
//   auto tables = store.get(component.dc, component.ac);
//   if (!tables) return mr::jpeg_refusal::tables;                  // an invalid code
//   const mr::detail::coefficient_entry& e = tables->ac[window >> 53];     // see coefficient_table.hpp
//
// Most files use the codes of T.81 annex K. The store recognizes codes by comparing their bytes. It builds the tables
// for a new code in a few microseconds.
// Lifetime: a job (the decoding of one image) shares ownership of its tables, so tables remain valid while a job uses
// them, even if the store has dropped them. The store reuses the memory of tables that no job uses.
// Threads: one store per worker.
#pragma once

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/image/jpeg/baseline/skip_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

constexpr unsigned difference_index_bits = 9;

struct component_tables {
  alignas(64) coefficient_table dc, ac;
  alignas(64) skip_table dc_skip, ac_skip;
  alignas(64) std::array<coefficient_entry, std::size_t{1} << difference_index_bits> difference;   // DC only
  huffman_code dc_code, ac_code;

  bool build(code_bytes dc_bytes, code_bytes ac_bytes) {
    if (!dc_code.assign(dc_bytes) || !ac_code.assign(ac_bytes)) return false;
    bool possible = true;
    dc_code.for_each([&](unsigned, unsigned size) { possible = possible && size <= 15; });
    if (!possible) return false;
    const second_symbols second(ac_code);
    build_ac_table(ac, ac_code, second);
    build_dc_table(dc, dc_code, second);
    const skippable_symbols words(ac_code);
    build_ac_skip_table(ac_skip, words);
    build_dc_skip_table(dc_skip, dc_code, words);
    build_differences();
    return true;
  }

 private:
  void build_differences() {
    coefficient_entry* at = difference.data();
    dc_code.for_each([&](unsigned length, unsigned size) {
      if (length > difference_index_bits) return;
      const std::size_t count = std::size_t{1} << (difference_index_bits - length);
      const unsigned total = length + size;
      const bool fits = size <= largest_dc_size && (size == 0 || length < difference_index_bits);
      entry_fields f{.bits = total, .advance = 1, .shift = 64 - total, .magnitude = size};
      std::fill_n(at, count, unpacked(fits ? packed_entry(f) : slow_entry));
      f.bias = 1 - (1 << size);
      if (fits && size > 0) std::fill_n(at, count / 2, unpacked(packed_entry(f)));
      at += count;
    });
    std::fill(at, difference.data() + difference.size(), unpacked(slow_entry));
  }
};

class component_table_store {
 public:
  std::shared_ptr<const component_tables> get(code_bytes dc, code_bytes ac) {
    const auto it = std::find_if(cache_.begin(), cache_.end(), [&](const entry& k) { return k.is(dc, ac); });
    if (it != cache_.end()) {
      std::rotate(cache_.begin(), it, it + 1);   // most recently used first
      return cache_.front().tables;
    }
    if (cache_.size() < most_) cache_.emplace_back();
    entry& oldest = cache_.back();   // reused, so that files with individual codes do not allocate for each image
    oldest.key.clear();
    if (oldest.tables.use_count() != 1) oldest.tables = make_aligned_shared<component_tables>();
    if (!oldest.tables->build(dc, ac)) return nullptr;
    oldest.dc_bytes = dc.size();
    oldest.key.assign(dc.begin(), dc.end());
    oldest.key.insert(oldest.key.end(), ac.begin(), ac.end());
    std::rotate(cache_.begin(), cache_.end() - 1, cache_.end());
    return cache_.front().tables;
  }

  std::size_t size() const noexcept { return cache_.size(); }

 private:
  static constexpr std::size_t most_ = 16;   // 52 KiB each

  struct entry {
    std::vector<std::uint8_t> key{};   // empty without tables
    std::size_t dc_bytes = 0;
    std::shared_ptr<component_tables> tables{};

    bool is(code_bytes dc, code_bytes ac) const {
      return dc_bytes == dc.size() && key.size() == dc.size() + ac.size() &&
             std::equal(dc.begin(), dc.end(), key.begin()) &&
             std::equal(ac.begin(), ac.end(), key.begin() + static_cast<std::ptrdiff_t>(dc.size()));
    }
  };

  std::vector<entry> cache_;
};

}}}  // namespace millrace::detail
