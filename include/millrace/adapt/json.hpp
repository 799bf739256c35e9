// One text field of a JSON document, out of lines or of records. Opt-in: needs simdjson (libsimdjson-dev).
//
//   #include <millrace/adapt/json.hpp>                                  // link with -lsimdjson
//   auto flow = mr::lines("corpus-{0000..1023}.jsonl.gz") | mr::map(mr::json_field("text")) | mr::map(tokenize) | ...
//   auto same = mr::shards("corpus-{000..099}.tar") | mr::map(mr::json_field("text")) | ...      // of the field "json"
//   std::string caption = mr::json_field("/meta/caption")(r["json"], scratch);      // a JSON pointer (RFC 6901)
//
// Gives the field as UTF-8, with its escapes resolved. Errors: data_error for what is no whole JSON document, for a
// field that is not there and for one that is no string; the flow adds file and line. Threads: any number at once; the
// parser belongs to the worker.
#pragma once

#include <millrace/item/line.hpp>
#include <millrace/item/scratch.hpp>

#include <string>

#if !__has_include(<simdjson.h>)
#error "millrace: simdjson is not installed: apt-get install libsimdjson-dev"
#endif
#include <simdjson.h>

namespace millrace::inline MILLRACE_ABI {

/// What takes the field out of each line, or of each record's field "json".
class json_field {
 public:
  /// `name` of a field of the outermost object, or a JSON pointer if it begins with '/'.
  explicit json_field(std::string name) : name_(std::move(name)) {}

  std::string operator()(const line& one, scratch& memory) const { return find(one.text(), memory, one.field()); }
  std::string operator()(const record& one, scratch& memory) const { return (*this)(one["json"], memory); }
  std::string operator()(const bytes& field, scratch& memory) const { return find(field.text(), memory, field); }

 private:
  struct tools {
    simdjson::dom::parser parser;
    std::string text;   // with the room behind it that the parser reads
  };

  std::string find(std::string_view document, scratch& memory, const bytes& from) const {
    auto& [parser, text] = memory.get<tools>();
    text.assign(document);
    text.append(simdjson::SIMDJSON_PADDING, ' ');
    simdjson::dom::element root, found;
    if (const auto problem = parser.parse(text.data(), document.size(), false).get(root))
      fail("is no JSON document: " + std::string(simdjson::error_message(problem)),
           "Each line has to hold one whole document (JSON Lines)", from);
    const auto looked_up = name_.starts_with('/') ? root.at_pointer(name_) : root.at_key(name_);
    if (looked_up.get(found))
      fail("has no field '" + printable(name_) + "'", "Name a field that every document has", from);
    std::string_view value;
    if (found.get(value))
      fail("has a field '" + printable(name_) + "' that is no string", "Name a field that is text in every document",
           from);
    return std::string(value);
  }

  [[noreturn]] static void fail(const std::string& what, std::string hint, const bytes& from) {
    const std::string name = from.name().empty() ? "the text" : "the field '" + printable(from.name()) + "'";
    throw data_error(name + " " + what + "; it begins \"" + printable(from.text().substr(0, 40)) + "\"",
                     std::move(hint), place_of(from));
  }

  std::string name_;
};

}  // namespace millrace::inline MILLRACE_ABI
