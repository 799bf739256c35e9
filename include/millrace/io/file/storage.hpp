// storage: the location of a source's files. It is the local file system, or an object that the program supplies.
//
//   struct vault {                                                // your own storage
//     struct file {
//       mr::file_identity identity() const;
//       std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer);   // 0 only at the end
//     };
//     std::unique_ptr<file> open(const std::string& name) const;  // null if the file does not exist
//   };
//   auto flow = mr::shards("vault:train-000.tar", {.storage = vault()});
//
// A storage may also have list(prefix), which globs and folders require. It may have find(name), which returns the
// identity of a file without opening the file. Names are passed to the storage unchanged. Names may look like URLs.
// They are never interpreted as local paths.
// Errors: a storage throws io_error if a request or a read fails. If a file is shorter than the size in its identity,
// the source throws io_error.
// Threads: several threads call open(), find() and list() concurrently, but only one thread at a time uses a file.
// Lifetime: a copy of an mr::storage refers to the same storage. An open file may outlive all copies. Therefore a file
// must not refer to memory that the destructor of its storage frees.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/io/file/byte_source.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The size and version of a file. Together they distinguish the file from a later file with the same name.
struct file_identity {
  std::uint64_t size_bytes = 0;
  /// A text that changes whenever the bytes change, such as an ETag, a generation or a checksum. Empty if only the size
  /// is known.
  std::string version{};

  friend bool operator==(const file_identity&, const file_identity&) = default;
};

/// An open file of a storage.
class stored_file : public byte_source {
 public:
  /// Returns the size and the version of the bytes that are read.
  virtual file_identity identity() const = 0;
};

/// The interface of a storage. For most storages, a type with open(name) suffices.
class storage_interface {
 public:
  storage_interface() = default;
  storage_interface(const storage_interface&) = delete;
  storage_interface& operator=(const storage_interface&) = delete;
  virtual ~storage_interface() = default;

  /// Opens a file. Returns null if the file does not exist.
  virtual std::unique_ptr<stored_file> open(const std::string& name) = 0;
  /// Returns the identity of a file, or nothing if the file does not exist.
  virtual std::optional<file_identity> find(const std::string& name) = 0;
  /// Returns the sorted names that begin with `prefix`. Throws setup_error if the storage cannot list names.
  virtual std::vector<std::string> list(const std::string& prefix) = 0;
  /// Announces the files that one reader will open, in the order in which it will open them. Each reader of a run calls
  /// this function at the beginning of each pass. A storage may prefetch the files. Most storages can ignore the call.
  virtual void expect(std::span<const std::string>) {}
  /// Opens a file whose first `front_bytes` will be read immediately. A storage may fetch these bytes with the request
  /// that opens the file.
  virtual std::unique_ptr<stored_file> open_front(const std::string& name, std::size_t front_bytes) {
    static_cast<void>(front_bytes);
    return open(name);
  }
  /// Passes the size and version that a set index (io/index/format/set_index.hpp) contains for a file. A storage may
  /// then open and find the file without a request. If the file has another size or version, reading it is an error.
  virtual void assume(const std::string&, const file_identity&) {}
  /// Returns the size in bytes of one request when a file is read from front to end. Returns 0 if the size is unknown.
  virtual std::size_t request_bytes() const { return 0; }
  /// Returns a local folder for the indexes of this storage's files, or "" if there is none.
  virtual std::string index_folder() const { return {}; }
};

namespace detail {

/// A type with open(name), which returns a pointer to a file with identity() and read_at().
template <class T>
concept storage_type = requires(T& s, const std::string& name, std::span<std::byte> buffer) {
  { static_cast<bool>(s.open(name)) };
  { s.open(name)->identity() } -> std::convertible_to<file_identity>;
  { s.open(name)->read_at(std::uint64_t{}, buffer) } -> std::convertible_to<std::size_t>;
};

/// Must be called when a read finds the end of the file at `offset_bytes`. Throws io_error if this offset is less than
/// the size in `identity`.
void check_file_end(const std::string& name, const file_identity& identity, std::uint64_t offset_bytes);

/// A file of a user-defined storage. `Pointer` is the type that open() returned.
template <class Pointer>
class user_file final : public stored_file {
 public:
  user_file(std::string name, Pointer file) : name_(std::move(name)), file_(std::move(file)) {}

  std::string_view name() const noexcept override { return name_; }
  file_identity identity() const override { return file_->identity(); }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override {
    const std::size_t got = file_->read_at(offset_bytes, buffer);
    if (got == 0 && !buffer.empty()) check_file_end(name_, file_->identity(), offset_bytes);
    return got;
  }
  void will_read(std::span<const byte_range> ranges) override {
    if constexpr (requires { file_->will_read(ranges); }) file_->will_read(ranges);
  }

 private:
  std::string name_;
  Pointer file_;
};

/// Throws the setup_error for a glob or folder in a storage without list().
[[noreturn]] void throw_cannot_list(const std::string& prefix);

/// A user-defined storage.
template <class T>
class user_storage final : public storage_interface {
 public:
  explicit user_storage(T own) : own_(std::move(own)) {}

  std::unique_ptr<stored_file> open(const std::string& name) override {
    auto file = own_.open(name);
    if (!file) return nullptr;
    return std::make_unique<user_file<decltype(file)>>(name, std::move(file));
  }
  std::optional<file_identity> find(const std::string& name) override {
    if constexpr (requires { own_.find(name); }) {
      return own_.find(name);
    } else {
      const auto file = own_.open(name);
      return file ? std::optional<file_identity>(file->identity()) : std::nullopt;
    }
  }
  std::vector<std::string> list(const std::string& prefix) override {
    if constexpr (requires { own_.list(prefix); }) return own_.list(prefix);
    else throw_cannot_list(prefix);
  }

 private:
  T own_;
};

}   // namespace detail

/// A storage as a value. The default is the local file system.
class storage {
 public:
  storage() = default;
  /// Creates a storage from an implementation of the complete interface. Null means the local file system.
  storage(std::shared_ptr<storage_interface> files) : files_(std::move(files)) {}   // NOLINT(*-explicit-*)
  /// Creates a storage from an object of the user's own type.
  template <detail::storage_type T>
  storage(T own) : files_(std::make_shared<detail::user_storage<T>>(std::move(own))) {}   // NOLINT(*-explicit-*)
  /// Rejects types that are not storages, with an error message of the compiler.
  template <class T>
    requires(!detail::storage_type<T> && !std::is_convertible_v<T, std::shared_ptr<storage_interface>> &&
             !std::is_base_of_v<storage, T>)
  // clang-format off
  __attribute__((unavailable("millrace: a storage has open(name), which returns a pointer to a file with identity() "
                             "and read_at(offset_bytes, buffer).")))
  storage(T);
  // clang-format on

  /// Returns whether the files are in the local file system.
  bool is_local() const noexcept { return !files_; }
  /// Returns the implementation. Requires that the storage is not local.
  storage_interface* operator->() const noexcept { return files_.get(); }
  /// Returns the implementation, or null for the local file system.
  const std::shared_ptr<storage_interface>& implementation() const noexcept { return files_; }

 private:
  std::shared_ptr<storage_interface> files_;
};

namespace detail {

/// The size of a file, and a number that changes when its bytes change. For a local file, the number is the
/// modification time in ns since 1970. For other files, it is a digest of the version.
struct file_stamp {
  std::uint64_t size_bytes = 0;
  std::int64_t changed = 0;

  friend bool operator==(const file_stamp&, const file_stamp&) = default;
};

/// Returns the size and a digest of the version.
file_stamp stamp_of(const file_identity& identity) noexcept;
/// Returns the stamp of a file. Returns nothing if the file does not exist, or if the status of a local file cannot be
/// read. Throws the errors of the storage.
std::optional<file_stamp> find_file_stamp(const storage& at, const std::string& name);
/// Opens a file. Throws io_error if the file does not exist.
std::unique_ptr<byte_source> open_file(const storage& at, const std::string& name);
/// Returns the size of a file that open_file() returned.
std::uint64_t size_of_open(const storage& at, const byte_source& file);
/// Returns up to `max_bytes` from the front of a file. If the file does not exist, returns nothing. Throws io_error if
/// the file cannot be read.
std::optional<std::string> front_of_stored_file(const storage& at, const std::string& name, std::size_t max_bytes);

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/storage.inl>
#endif
