// An object of a remote storage as a file: reads wait for the network, and what will be read is fetched ahead.
//
//   mr::detail::remote_file file(place, object, front);
//   file.will_read({{{.offset_bytes = 0}}});                   // all of it, from its front on
//   const std::size_t got = file.read_at(0, buffer);
//
// Ranges that were told are fetched in parts. Parts are ahead of the reader by a window (fetch_window.hpp). All files
// share the memory for parts. Other bytes are fetched when they are read, straight into the reader's buffer.
// Errors: those of the network, as transfer_engine.hpp says. Threads: one at a time.
#pragma once

#include <millrace/adapt/remote/transfer/fetch_window.hpp>
#include <millrace/adapt/remote/transfer/part_memory.hpp>
#include <millrace/adapt/remote/transfer/transfer_engine.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The objects that were found, by their names.
class found_objects {
 public:
  /// Returns the object; null if it was not found yet.
  std::shared_ptr<remote_object> get(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : at->second;
  }
  /// Keeps what was found last; null forgets.
  void put(const std::string& name, std::shared_ptr<remote_object> object) {
    const std::lock_guard lock(mutex_);
    if (object) by_name_[name] = std::move(object);
    else by_name_.erase(name);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<remote_object>> by_name_;
};

/// The window of the file that was read and closed last.
class kept_window {
 public:
  explicit kept_window(std::size_t bytes) noexcept : last_(bytes) {}
  void keep(const fetch_window& w) noexcept {
    if (!w.has_given()) return;
    const std::lock_guard lock(mutex_);
    last_ = w;
  }
  fetch_window of_next_file() const noexcept {
    const std::lock_guard lock(mutex_);
    return last_.of_next_file();
  }

 private:
  mutable std::mutex mutex_;
  fetch_window last_;
};

/// The parts of a remote storage that its files share.
struct remote_place {
  explicit remote_place(const remote_options& o)
      : part_bytes(o.part_bytes), memory(o.memory_bytes), engine(o) {}

  /// Returns the size of a part, which is smaller where many files are read at the same time.
  std::size_t part_size() const noexcept {
    const std::size_t each = memory.bound_bytes() / (2 * std::max<std::size_t>(readers.load(), 1));
    return std::clamp(each, std::min(part_bytes, std::size_t{256} << 10), part_bytes);
  }

  const std::size_t part_bytes;
  part_memory memory;
  std::atomic<std::size_t> readers{0};   // files that fetch ahead now
  kept_window windows{part_bytes};   // each file begins with the last one
  found_objects found;
  transfer_engine engine;
};

/// An open object.
class remote_file final : public stored_file {
 public:
  static constexpr std::size_t usual_front_bytes = std::size_t{64} << 10;

  /// Asks for the front of an object. Returns null if there is none.
  static std::unique_ptr<remote_file> open(std::shared_ptr<remote_place> place, const std::string& name,
                                           std::size_t front_bytes = usual_front_bytes) {
    auto object = std::make_shared<remote_object>(remote_object{.name = name});
    part front = make_part(*place, object, {0, front_bytes}, part_memory::need::required);
    const abandoned_at_end guard{front, *place};
    place->engine.submit(front.fetch);
    if (!front.fetch->wait_for_identity()) return nullptr;
    auto file = std::make_unique<remote_file>(place, std::move(object));
    file->parts_.push_back(std::move(front));
    return file;
  }

  /// Asks whether an object is there, for one byte of it. Signed addresses and some stores refuse HEAD.
  static std::shared_ptr<remote_object> find(remote_place& place, const std::string& name) {
    auto object = std::make_shared<remote_object>(remote_object{.name = name});
    std::byte one{};
    const auto fetch = std::make_shared<range_fetch>(object, 0, std::span(&one, 1));
    struct abandoned_at_end {
      range_fetch& fetch;
      ~abandoned_at_end() { fetch.abandon(); }
    } const guard{*fetch};
    place.engine.submit(fetch);
    return fetch->wait_for_identity() ? object : nullptr;
  }

  remote_file(std::shared_ptr<remote_place> place, std::shared_ptr<remote_object> object)
      : place_(std::move(place)), object_(std::move(object)), name_(object_->name) {}
  ~remote_file() override {
    place_->windows.keep(window_);
    drop_all();
  }

  std::string_view name() const noexcept override { return name_; }
  file_identity identity() const override { return *object_->identity; }

  void will_read(std::span<const byte_range> ranges) override {
    told_.clear();
    const std::uint64_t end = size_bytes();
    for (const byte_range& r : ranges) {
      if (r.offset_bytes >= end || r.size_bytes == 0) continue;
      told_.push_back({r.offset_bytes, r.offset_bytes + std::min(r.size_bytes, end - r.offset_bytes)});
    }
    drop_parts_but_of_told();
    ask_ahead();
  }

  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override {
    if (buffer.empty() || offset_bytes >= size_bytes()) return 0;
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size_bytes() - offset_bytes));
    if (find(offset_bytes) == parts_.end()) reach(offset_bytes);
    const auto at = find(offset_bytes);
    if (at == parts_.end()) return read_now(offset_bytes, buffer.first(bytes));
    const auto from = static_cast<std::size_t>(offset_bytes - at->fetch->offset_bytes());
    const std::size_t end = std::min(from + bytes, at->fetch->size_bytes());
    if (at->fetch->arrived() < end) window_.adapt(place_->memory.bound_bytes() / 2);
    at->fetch->wait_into(from, buffer.first(end - from));
    window_.gave(end - from, place_->engine.now());
    if (end == at->fetch->size_bytes()) parts_.erase(at);
    ask_ahead();
    return end - from;
  }

 private:
  struct part {
    std::shared_ptr<range_fetch> fetch;
    part_memory::block memory;
  };
  /// A part that its owner has not taken is given up.
  struct abandoned_at_end {
    part& one;
    remote_place& place;
    ~abandoned_at_end() {
      if (!one.fetch) return;
      one.fetch->abandon();
      place.engine.sweep();
    }
  };

  static part make_part(remote_place& place, const std::shared_ptr<remote_object>& object, const asked_range& range,
                        part_memory::need how) {
    auto memory = place.memory.take(static_cast<std::size_t>(range.end_byte - range.first_byte), how);
    if (!memory) throw std::bad_alloc();
    auto fetch = std::make_shared<range_fetch>(object, range.first_byte, memory->bytes());
    return {std::move(fetch), std::move(*memory)};
  }

  std::uint64_t size_bytes() const noexcept { return object_->identity->size_bytes; }

  std::deque<part>::iterator find(std::uint64_t offset_bytes) {
    return std::find_if(parts_.begin(), parts_.end(), [&](const part& p) {
      return offset_bytes >= p.fetch->offset_bytes() + p.fetch->kept_from() && offset_bytes < p.fetch->end_byte();
    });
  }

  /// Asks for the told part with this offset, if there is one. Told parts before it are skipped.
  void reach(std::uint64_t offset_bytes) {
    const auto found = std::find_if(told_.begin(), told_.end(), [&](const asked_range& r) {
      return offset_bytes >= r.first_byte && offset_bytes < r.end_byte;
    });
    if (found == told_.end()) return;
    told_.erase(told_.begin(), found);
    // A reader that looks at headers only jumps over what is between.
    const std::uint64_t skipped = offset_bytes - told_.front().first_byte;
    if (skipped >= place_->part_size()) told_.front().first_byte = offset_bytes;
    drop_parts_before(told_.front().first_byte);
    while (find(offset_bytes) == parts_.end() && ask_next(part_memory::need::required)) {
    }
  }

  /// Asks for told parts until the window or the memory is full.
  void ask_ahead() {
    set_reading(!told_.empty() || !parts_.empty());
    std::size_t ahead = 0;
    for (const part& p : parts_) ahead += p.fetch->size_bytes();
    while (!told_.empty() && ahead < window_.bytes()) {
      const std::size_t before = parts_.size();
      if (!ask_next(parts_.empty() ? part_memory::need::required : part_memory::need::optional)) return;
      if (parts_.size() > before) ahead += parts_.back().fetch->size_bytes();
    }
  }

  /// Asks for the next told part. Returns false if there is none, or no memory.
  bool ask_next(part_memory::need how) {
    while (!told_.empty()) {
      asked_range& next = told_.front();
      // The front of the object is there from the start.
      for (const part& p : parts_)
        if (next.first_byte >= p.fetch->offset_bytes() && next.first_byte < p.fetch->end_byte())
          next.first_byte = p.fetch->end_byte();
      if (next.first_byte >= next.end_byte) {
        told_.pop_front();
        continue;
      }
      const std::uint64_t left = next.end_byte - next.first_byte;
      // A rest that is smaller than half a part goes with the last one.
      const std::size_t size = place_->part_size();
      const std::uint64_t bytes = left <= size + size / 2 ? left : size;
      auto memory = place_->memory.take(static_cast<std::size_t>(bytes), how);
      if (!memory) return false;
      auto fetch = std::make_shared<range_fetch>(object_, next.first_byte, memory->bytes());
      parts_.push_back({fetch, std::move(*memory)});
      next.first_byte += bytes;
      if (next.first_byte == next.end_byte) told_.pop_front();
      place_->engine.submit(std::move(fetch));
      return true;
    }
    return false;
  }

  /// Fetches into the reader's own buffer; much at once in several parts.
  std::size_t read_now(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
    struct all_abandoned {
      std::vector<std::shared_ptr<range_fetch>> all{};
      remote_place& place;
      ~all_abandoned() {
        for (const auto& one : all) one->abandon();
        place.engine.sweep();
      }
    } fetches{.place = *place_};
    const std::size_t size = place_->part_bytes;
    for (std::size_t at = 0; at < buffer.size();) {
      const std::size_t left = buffer.size() - at, bytes = left <= size + size / 2 ? left : size;
      fetches.all.push_back(std::make_shared<range_fetch>(object_, offset_bytes + at, buffer.subspan(at, bytes)));
      place_->engine.submit(fetches.all.back());
      at += bytes;
    }
    for (const auto& one : fetches.all) one->wait_for(one->size_bytes());
    fetches.all.clear();
    return buffer.size();
  }

  void drop_parts_before(std::uint64_t offset_bytes) {
    bool any = false;
    for (auto it = parts_.begin(); it != parts_.end();) {
      if (it->fetch->end_byte() > offset_bytes || it->fetch->offset_bytes() == 0) {
        ++it;
        continue;
      }
      it->fetch->abandon();
      it = parts_.erase(it);
      any = true;
    }
    if (any) place_->engine.sweep();
  }

  void drop_parts_but_of_told() {
    bool any = false;
    for (auto it = parts_.begin(); it != parts_.end();) {
      const bool told = std::any_of(told_.begin(), told_.end(), [&](const asked_range& r) {
        return it->fetch->offset_bytes() < r.end_byte && r.first_byte < it->fetch->end_byte();
      });
      if (told || it->fetch->offset_bytes() == 0) {
        ++it;
        continue;
      }
      it->fetch->abandon();
      it = parts_.erase(it);
      any = true;
    }
    if (any) place_->engine.sweep();
  }

  void drop_all() noexcept {
    set_reading(false);
    if (parts_.empty()) return;
    for (const part& p : parts_) p.fetch->abandon();
    parts_.clear();
    place_->engine.sweep();
  }

  void set_reading(bool reading) noexcept {
    if (std::exchange(reading_, reading) == reading) return;
    if (reading) ++place_->readers;
    else --place_->readers;
  }

  const std::shared_ptr<remote_place> place_;
  const std::shared_ptr<remote_object> object_;
  const std::string name_;
  std::deque<part> parts_;          // on their way or there, in the order in which they will be read
  std::deque<asked_range> told_;   // of which no part was asked for yet
  fetch_window window_{place_->windows.of_next_file()};
  bool reading_ = false;
};

}}}  // namespace millrace::detail
