// The parts of a Python loader that depend on the type of its flow: the options, the session, and the batches.
//
//   const std::unique_ptr<loader_entry> entries[] = {loader<&options::shards, &options::batch>("train", train)};
//   return mr::detail::python::create_module("photos", entries);
//
// Errors: the errors of session; create_module() sets a Python exception. Threads: sessions run without Python's global
// interpreter lock.
#pragma once

#include <millrace/adapt/python/values.hpp>
#include <millrace/adapt/tensors/dlpack_structs.hpp>
#include <millrace/item/column/member.hpp>
#include <millrace/run/session.hpp>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <tuple>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace [[gnu::visibility("hidden")]] python {

/// A tensor in the slot of a batch. The tensor's name is `column` (for example "example::pixels") followed by `suffix`.
struct slot_tensor {
  dlpack_column content{};
  const char *column = "", *suffix = "";
};

/// A session. This interface does not depend on the type of the flow.
class door {
 public:
  virtual ~door() = default;
  virtual engine_base& engine() const = 0;
  /// If `starts` is true, begins a loop over `epoch` and returns its first batch. Otherwise, returns the next batch.
  /// Sets `tensors` to the tensors of the batch. Returns null at the end of the epoch.
  virtual batch_lease* advance(std::uint64_t epoch, bool starts, std::span<const slot_tensor>& tensors) = 0;
};
template <class Flow>
class door_of final : public door {
  using session_type = decltype(session(std::declval<Flow>(), session_options{}));
  using views = decltype(std::declval<const typename session_type::batch&>().columns());

 public:
  door_of(Flow flow, const session_options& o) : session_(std::move(flow), o) {}
  engine_base& engine() const override { return session_access::engine(session_); }
  batch_lease* advance(std::uint64_t epoch, bool starts, std::span<const slot_tensor>& tensors) override {
    auto& of = session_access::engine(session_);
    if (!(starts ? of.begin(epoch) : of.step(epoch))) return nullptr;
    auto& b = *of.current();
    std::size_t count = 0;
    const auto add = [&](const auto& view, const char* name, const char* suffix = "") {
      tensors_[count++] = {dlpack_column_of(view, b.device_ordinal()), name, suffix};
    };
    const auto add_column = [&](const auto& c) {
      if constexpr (requires { c.values; }) add(c.values, c.values.name);
      else add(c, c.name);
      if constexpr (requires { c.lengths; }) add(c.lengths, c.lengths.name, "_lengths");
      else if constexpr (requires { c.sizes; }) add(c.sizes, c.sizes.name, "_sizes");
      else if constexpr (requires { c.offsets; }) add(c.offsets, c.offsets.name, "_offsets");
    };
    std::apply([&](const auto&... column) { (add_column(column), ...); }, b.columns());
    if (b.has_flags()) add(b.valid(), "valid");
    tensors = std::span(tensors_).first(count);
    return &b;
  }

 private:
  session_type session_;
  std::array<slot_tensor, 2 * std::tuple_size_v<views> + 1> tensors_{};
};

/// A member of an options struct. In Python, it is an argument of the function that creates the loader.
struct option {
  const char* name;
  std::string (*annotation)();
  PyObject* (*value)(const void* options);   ///< returns a new Python object
  bool (*read)(PyObject* from, void* options, const argument& of);
};
template <auto M>
constexpr option option_of() {
  using object = member_owner<M>;
  constexpr std::string_view spelling = member_spelling<M>.data();   // such as "options::batch"
  return {.name = spelling.data() + spelling.rfind(':') + 1,
          .annotation = annotation_of<member_type<M>>,
          .value = [](const void* o) { return to_python(static_cast<const object*>(o)->*M); },
          .read = [](PyObject* from, void* o,
                     const argument& of) { return python::read(from, static_cast<object*>(o)->*M, of); }};
}
template <auto... Options>
inline constexpr option options_of[] = {option_of<Options>()...};

/// A Python function that creates a loader. The entry contains the options of a flow, and the C++ function that returns
/// the flow.
class loader_entry {
 public:
  const char *name, *doc;
  std::span<const option> options;

  loader_entry(const char* n, const char* d, std::span<const option> o) : name(n), doc(d), options(o) {}
  virtual ~loader_entry() = default;
  virtual std::unique_ptr<loader_entry> copy() const = 0;
  virtual void* values() = 0;   ///< the object with the options
  virtual std::unique_ptr<door> open(const session_options& o) const = 0;
};
template <class Make, auto... Options>
class entry_of final : public loader_entry {
 public:
  entry_of(const char* n, const char* d, Make make)
      : loader_entry(n, d, options_of<Options...>), make_(std::move(make)) {}
  std::unique_ptr<loader_entry> copy() const override { return std::make_unique<entry_of>(*this); }
  void* values() override { return &values_; }
  std::unique_ptr<door> open(const session_options& o) const override {
    return std::make_unique<door_of<std::remove_cvref_t<decltype(make_(values_))>>>(make_(values_), o);
  }

 private:
  Make make_;
  std::tuple_element_t<0, std::tuple<member_owner<Options>...>> values_{};
};

/// Creates the module. On failure, sets a Python exception and returns null.
PyObject* create_module(const char* name, std::span<const std::unique_ptr<loader_entry>> entries);

}}}}   // namespace millrace::detail::python

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/python/impl/loader.inl>
#endif
