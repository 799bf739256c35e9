// Writes event files for TensorBoard, with scalars and encoded images.
//
//   mr::log out(mr::tensorboard("runs/first/train"));
//   out.push({.step = 1200, .values = {{"loss", 0.41}}});
//   out.push({.step = 1200, .images = {{.name = "augmented", .file = jpeg_bytes, .width = 224, .height = 224}}});
//   // then in a shell: tensorboard --logdir runs
//
// Each sink starts a new file in `folder`; TensorBoard joins the files of a folder. Use separate folders for training
// and validation. Messages of rows are not written. Values are stored as f32. When write() returns, the row is in the
// file. It is on the disk within the next ten seconds.
// Errors: setup_error for an empty folder name; io_error if a file operation fails. Threads: the log's writer thread.
// Format: TFRecord frames, little endian: u64 length, masked CRC-32C of the length, payload, masked CRC-32C of the
// payload. Each payload is an Event message in protobuf's wire format. Event: wall_time = 1 (double), step = 2 (int64),
// file_version = 3 (string), summary = 5. Summary: value = 1. Value: tag = 1, simple_value = 2 (float), image = 4.
// Image: height = 1, width = 2, colorspace = 3, encoded_image_string = 4.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/io/file/append_file.hpp>
#include <millrace/train/log.hpp>

#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// A protobuf message that is being written; fields may be written in any order.
class protobuf_message {
 public:
  void add_varint(std::uint32_t field, std::uint64_t value);
  void add_double(std::uint32_t field, double value);
  void add_float(std::uint32_t field, float value);
  void add_bytes(std::uint32_t field, std::string_view bytes);
  void little_endian(std::uint64_t value, int bytes);
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  void key(std::uint32_t field, std::uint32_t wire_type) { varint(field << 3 | wire_type); }
  void varint(std::uint64_t value);

  std::string bytes_;
};

/// Returns the masked CRC-32C of `data`, as the format requires.
std::uint32_t masked_crc32c(std::string_view data) noexcept;

std::string tfrecord(std::string_view payload);

std::string tensorboard_event(const row& r);

}   // namespace detail

/// The folder of the event file, and the clock.
struct tensorboard_options {
  std::string folder{};                       ///< created if it does not exist
  time_source now = detail::system_instant;   ///< clock for the name and the first record of the file
};

/// A sink that writes rows to a new TensorBoard event file.
class tensorboard final : public sink {
 public:
  /// Creates the file. Throws setup_error for an empty folder name, and io_error if the file cannot be created.
  explicit tensorboard(const tensorboard_options& options);
  explicit tensorboard(std::string folder) : tensorboard(tensorboard_options{.folder = std::move(folder)}) {}

  const char* name() const noexcept override { return "TensorBoard"; }
  /// Returns the path of the event file.
  const std::string& path() const noexcept { return file_.path(); }

  MILLRACE_INLINE void write(const row& r) override;
  void tick(instant now) override { file_.sync_when_due(now.steady_ns, sync_ns); }
  void close() override { file_.sync(); }

 private:
  /// Creates the file events.out.tfevents.<seconds, 10 digits>.<host>.<process>.<serial> with the first free serial.
  static detail::append_file start_file(const std::string& folder, instant now);

  detail::append_file file_;
  static constexpr std::int64_t sync_ns = 10'000'000'000;   // a crash of the machine loses at most the rows of 10 s
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/train/impl/tensorboard.inl>
#endif
