// Definitions for tensorboard.hpp.
#pragma once

#include <millrace/train/tensorboard.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>

#include <unistd.h>

#include <bit>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE void protobuf_message::add_varint(std::uint32_t field, std::uint64_t value) {
  key(field, 0);
  varint(value);
}

MILLRACE_INLINE void protobuf_message::add_double(std::uint32_t field, double value) {
  key(field, 1);
  little_endian(std::bit_cast<std::uint64_t>(value), 8);
}

MILLRACE_INLINE void protobuf_message::add_float(std::uint32_t field, float value) {
  key(field, 5);
  little_endian(std::bit_cast<std::uint32_t>(value), 4);
}

MILLRACE_INLINE void protobuf_message::add_bytes(std::uint32_t field, std::string_view bytes) {
  key(field, 2);
  varint(bytes.size());
  bytes_ += bytes;
}

MILLRACE_RARE void protobuf_message::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 255);
}

MILLRACE_RARE void protobuf_message::varint(std::uint64_t value) {
  for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
  bytes_ += static_cast<char>(value);
}

MILLRACE_INLINE std::uint32_t masked_crc32c(std::string_view data) noexcept {
  return std::rotr(crc32c(bytes_of(data)), 15) + 0xa282ead8U;
}

MILLRACE_RARE std::string tfrecord(std::string_view payload) {
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

MILLRACE_RARE std::string tensorboard_event(const row& r) {
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

}   // namespace detail

MILLRACE_INLINE tensorboard::tensorboard(const tensorboard_options& options)
    : file_(start_file(options.folder, options.now())) {
  detail::protobuf_message version;
  version.add_double(1, detail::to_seconds(options.now().unix_ns));
  version.add_bytes(3, "brain.Event:2");
  file_.append(detail::tfrecord(version.bytes()));
}

MILLRACE_INLINE void tensorboard::write(const row& r) {
  if (r.values.empty() && r.images.empty() && r.nonfinite == 0) return;
  file_.append(detail::tfrecord(detail::tensorboard_event(r)));
}

MILLRACE_INLINE detail::append_file tensorboard::start_file(const std::string& folder, instant now) {
  if (folder.empty()) throw setup_error("tensorboard_options::folder is empty", "Set a folder such as \"runs/first\"");
  detail::create_folders(folder);
  char host[256] = "localhost";
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') std::memcpy(host, "localhost", 10);
  std::string seconds = std::to_string(now.unix_ns / 1'000'000'000);
  seconds.insert(0, seconds.size() < 10 ? 10 - seconds.size() : 0, '0');
  const std::string stem = folder + "/events.out.tfevents." + seconds + "." + host + "." + std::to_string(::getpid()) +
                           ".";
  for (int serial = 0;; ++serial) {
    const std::string path = stem + std::to_string(serial);
    if (::access(path.c_str(), F_OK) != 0) return detail::append_file({.path = path, .must_be_new = true});
  }
}

}}   // namespace millrace
