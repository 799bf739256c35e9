// Event files that TensorBoard reads: scalars, and pictures that are already encoded.
//
//   mr::log out(mr::tensorboard("runs/first/train"));
//   out.push({.step = 1200, .values = {{"loss", 0.41}}});
//   out.push({.step = 1200, .images = {{.name = "augmented", .file = jpeg_bytes, .width = 224, .height = 224}}});
//   // then in a shell: tensorboard --logdir runs
//
// Each sink starts a new file in `folder`; TensorBoard joins them. So a file that a crash cut short is never written to
// again. Give training and validation separate folders, as TensorBoard's users expect. Messages are skipped.
// Values are stored as f32. A record is in the file when write() returns, and on the disk within ten seconds.
// Errors: setup_error for an empty folder name; io_error. Threads: the log's writer thread.
// Format: TFRecord framing (u64 length, masked CRC-32C of it, payload, masked CRC-32C of that; little endian) around
// Event messages in protobuf's wire format. Event: wall_time = 1 (double), step = 2 (int64), file_version = 3 (string),
// summary = 5. Summary: value = 1. Value: tag = 1, simple_value = 2 (float), image = 4. Image: height = 1, width = 2,
// colorspace = 3, encoded_image_string = 4.
#pragma once

#include <millrace/base/crc32c.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/append_file.hpp>
#include <millrace/train/sink.hpp>

#include <bit>
#include <string>
#include <unistd.h>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// A protobuf message that is being written; fields may come in any order.
class protobuf_message {
 public:
  void add_varint(std::uint32_t field, std::uint64_t value) {
    key(field, 0);
    varint(value);
  }
  void add_double(std::uint32_t field, double value) {
    key(field, 1);
    little_endian(std::bit_cast<std::uint64_t>(value), 8);
  }
  void add_float(std::uint32_t field, float value) {
    key(field, 5);
    little_endian(std::bit_cast<std::uint32_t>(value), 4);
  }
  void add_bytes(std::uint32_t field, std::string_view bytes) {
    key(field, 2);
    varint(bytes.size());
    bytes_ += bytes;
  }
  void little_endian(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 255);
  }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  void key(std::uint32_t field, std::uint32_t wire_type) { varint(field << 3 | wire_type); }
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// Returns the masked CRC-32C of the format. The mask is there because a CRC of data that holds CRCs is weak.
inline std::uint32_t masked_crc32c(std::string_view data) noexcept {
  return std::rotr(crc32c(bytes_of(data)), 15) + 0xa282ead8U;
}

inline std::string tfrecord(std::string_view payload) {
  protobuf_message head;
  head.little_endian(payload.size(), 8);
  protobuf_message framed;
  framed.little_endian(payload.size(), 8);
  framed.little_endian(masked_crc32c(head.bytes()), 4);
  std::string record = framed.bytes();
  record += payload;
  protobuf_message tail;
  tail.little_endian(masked_crc32c(payload), 4);
  return record + tail.bytes();
}

inline std::string tensorboard_event(const row& r) {
  protobuf_message summary;
  const auto add_scalar = [&](std::string_view name, double number) {
    protobuf_message value;
    value.add_bytes(1, name);
    value.add_float(2, static_cast<float>(number));
    summary.add_bytes(1, value.bytes());
  };
  if (r.epoch) add_scalar("epoch", static_cast<double>(*r.epoch));
  for (const auto& q : r.values) add_scalar(q.name, q.value);
  if (r.nonfinite > 0) add_scalar("nonfinite", static_cast<double>(r.nonfinite));
  for (const auto& i : r.images) {
    protobuf_message image;
    image.add_varint(1, i.height);
    image.add_varint(2, i.width);
    image.add_varint(3, 3);   // RGB
    image.add_bytes(4, {reinterpret_cast<const char*>(i.file.data()), i.file.size()});
    protobuf_message value;
    value.add_bytes(1, i.name);
    value.add_bytes(4, image.bytes());
    summary.add_bytes(1, value.bytes());
  }
  protobuf_message event;
  event.add_double(1, to_seconds(r.unix_ns));
  event.add_varint(2, r.step);
  event.add_bytes(5, summary.bytes());
  return event.bytes();
}

}  // namespace detail

/// The folder of the file and how often the file is synced.
struct tensorboard_options {
  std::string folder{};                    ///< created if it does not exist
  time_source now = detail::system_instant;        ///< clock for the file's name and its first record
};

/// A sink that writes rows to a new TensorBoard event file.
class tensorboard final : public sink {
 public:
  /// Creates the file. Throws setup_error for an empty folder name, io_error.
  explicit tensorboard(const tensorboard_options& options)
      : file_(start_file(options.folder, options.now())) {
    detail::protobuf_message version;
    version.add_double(1, detail::to_seconds(options.now().unix_ns));
    version.add_bytes(3, "brain.Event:2");
    file_.append(detail::tfrecord(version.bytes()));
  }
  explicit tensorboard(std::string folder) : tensorboard(tensorboard_options{.folder = std::move(folder)}) {}

  const char* name() const noexcept override { return "TensorBoard"; }
  /// Returns the path of the event file.
  const std::string& path() const noexcept { return file_.path(); }

  void write(const row& r) override {
    if (r.values.empty() && r.images.empty() && r.nonfinite == 0) return;
    file_.append(detail::tfrecord(detail::tensorboard_event(r)));
  }
  void tick(instant now) override { file_.sync_when_due(now.steady_ns, sync_ns); }
  void close() override { file_.sync(); }

 private:
  /// Creates events.out.tfevents.<seconds, 10 digits>.<host>.<process>.<serial> with the first free serial.
  static detail::append_file start_file(const std::string& folder, instant now) {
    if (folder.empty())
      throw setup_error("tensorboard_options::folder is empty", "Name a folder such as \"runs/first\"");
    detail::make_folders(folder);
    char host[256] = "localhost";
    if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') std::memcpy(host, "localhost", 10);
    std::string seconds = std::to_string(now.unix_ns / 1'000'000'000);
    seconds.insert(0, seconds.size() < 10 ? 10 - seconds.size() : 0, '0');
    const std::string stem =
        folder + "/events.out.tfevents." + seconds + "." + host + "." + std::to_string(::getpid()) + ".";
    for (int serial = 0;; ++serial) {
      const std::string path = stem + std::to_string(serial);
      if (::access(path.c_str(), F_OK) != 0) return detail::append_file({.path = path, .must_be_new = true});
    }
  }

  detail::append_file file_;
  static constexpr std::int64_t sync_ns = 10'000'000'000;   // a crash of the machine costs at most as much
};

}}  // namespace millrace
