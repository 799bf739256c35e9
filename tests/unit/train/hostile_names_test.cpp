// Hostile names have no effect in any place that prints or writes names.
#include "../report/sample_statistics.hpp"
#include "../../captured_stderr.hpp"
#include "fixtures.hpp"

#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/json_objects.hpp>
#include <millrace/base/text.hpp>
#include <millrace/report/print/json_report.hpp>
#include <millrace/report/print/html_report.hpp>
#include <millrace/report/print/text_report.hpp>
#include <millrace/run/quarantine_list.hpp>
#include <millrace/sources/keys_from.hpp>
#include <millrace/train/json_lines.hpp>
#include <millrace/train/log.hpp>
#include <millrace/train/status_line.hpp>
#include <millrace/train/tensorboard.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

// Names that a data set may have, and that must have no effect where they are printed or written.
namespace hostile {

struct hostile_name {
  std::string what;
  std::string text;
};

inline const std::vector<hostile_name>& names() {
  using namespace std::string_literals;
  static const std::vector<hostile_name> all{
      {"end of line", "a\nmillrace: all is well"},
      {"return and tab", "a\rb\tc"},
      {"NUL", "a\0b"s},
      {"ESC: clears the screen", "\x1b[2J\x1b[H"},
      {"ESC: sets the title", "\x1b]0;owned\x07"},
      {"C1 in UTF-8: U+009B", "\xc2\x9b" "2J"},
      {"C1 as a byte", "\x9b" "2J"},
      {"DEL and backspace", "a\x7f\b\b"},
      {"line separator, turned writing", "a\xe2\x80\xa8" "b\xe2\x80\xae" "c\xe2\x81\xa6" "d"},
      {"script", "<script>alert(1)</script>"},
      {"attribute", "\" onload=\"alert(1)\" x='"},
      {"entity", "&lt;&amp;"},
      {"JSON", "\"}, {\"key\": \"x\\"},
      {"way out", "../../../etc/passwd"},
      {"absolute", "/etc/passwd"},
      {"format", "%s%n%d"},
      {"not UTF-8", "\xff\xfe\xc3("},
      {"cut UTF-8", "abc\xe2\x82"},
      {"surrogate", "\xed\xa0\x80"},
      {"64 KB", std::string(65'536, 'k')},
      {"64 KB of ESC", std::string(65'536, '\x1b')},
  };
  return all;
}

/// The defect of a text that a terminal gets; nullptr: none.
inline const char* obeyed_by_a_terminal(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && text[i] != '\n' && text[i] != '\t') || byte == 0x7f) return "a control character";
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return "a C1 character";
    if (text.substr(i, 3) == "\xe2\x80\xae" || text.substr(i, 3) == "\xe2\x81\xa6") return "turned writing";
  }
  return millrace::detail::is_utf8(text) ? nullptr : "bytes that are not UTF-8";
}

}  // namespace hostile

namespace mr = millrace;

using hostile::names, hostile::obeyed_by_a_terminal;

namespace {

std::string as_utf8(std::string text) {
  mr::detail::clean_utf8(text);
  return text;
}

/// Whether one of a document's objects has this string, as a key or as a value.
bool json_has(std::string_view json, const std::string& name) {
  bool is_there = false;
  mr::detail::json_objects(json, "test").for_each([&](const std::vector<mr::detail::json_objects::member>& members) {
    for (const auto& m : members) is_there = is_there || m.key == name || m.text == name;
  });
  return is_there;
}

struct descriptor {
  explicit descriptor(const std::string& path) : file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { ::close(file); }
  int file;
};

mr::row row_named(const std::string& name) {
  return {.step = 1, .values = {{name, 0.5}},
          .images = {{.name = name, .file = {std::byte{1}}, .width = 1, .height = 1}}, .message = name};
}

mr::run_report report_named(const std::string& name) {
  mr::flow_statistics f = statistics_of({.work_s = 40});
  for (auto& s : f.stages) s.name += name;
  mr::timeline events;
  const std::uint32_t track = events.add_track(name);
  for (std::uint64_t b = 0; b < 2; ++b) {
    const auto at = static_cast<std::int64_t>(b * 1'000'000);
    events.spans.push_back({.track = track, .name = name, .start_ns = at, .end_ns = at + 900'000, .batch = b});
    events.spans.push_back({.track = track, .name = name + "2", .start_ns = at, .end_ns = at + 400'000, .batch = b});
    events.deliveries.push_back({.at_ns = at, .wait_ns = 100, .step_ns = 200, .number = b});
  }
  events.counters.push_back({.name = name, .at_ns = 0, .value = 1});
  mr::run_report r = mr::report_of(f, std::move(events));
  r.title = r.origin.command = r.origin.machine = r.origin.date = r.origin.program = name;
  r.facts.push_back({name, name});
  r.predictions.push_back({name, 1, 2});
  r.conclusion.evidence.push_back(name);
  r.conclusion.advice = name;
  return r;
}

}  // namespace

TEST_CASE("error texts: a terminal obeys no name, and a long one is cut") {
  for (const auto& h : names()) {
    const std::string& name = h.text;
    CAPTURE(h.what);
    const mr::data_error ours("the field '" + mr::printable(name) + "' is wrong", "Remove it",
                              {.stage = name, .shard = name, .key = name, .offset_bytes = 1});
    CHECK(std::string_view(ours.what()).find('\n') == std::string_view::npos);
    std::exception_ptr theirs;
    try {
      throw std::runtime_error("bad label in '" + name + "'");
    } catch (...) {
      theirs = mr::located_exception({.stage = "map 1", .key = name});
    }
    mr::data_error raw(name, name, {.key = name});
    raw.add(name);
    raw.locate({.shard = name});
    mr::late_data_error late(name, {});
    late.suspect(mr::late_data_error::suspect_samples::none);
    std::vector<std::string> texts{ours.what(), raw.what(), raw.message(), raw.hint(), late.what()};
    CHECK_THROWS_AS(std::rethrow_exception(theirs), mr::stage_error);
    try {
      std::rethrow_exception(theirs);
    } catch (const mr::error& e) {
      texts.push_back(e.what());
      texts.push_back(e.message());
    }
    for (const std::string& text : texts) {
      const char* const wrong = obeyed_by_a_terminal(text);
      CHECK_MESSAGE(!wrong, wrong);
    }
    CHECK(std::strlen(ours.what()) < 20'000);
    CHECK(ours.where().key == name);
  }
  CHECK(mr::printable(std::string(1'024, 'k')) == std::string(1'024, 'k'));
  CHECK(mr::printable(std::string(1'025, 'k')) == std::string(1'024, 'k') + "... (1025 bytes)");
  const mr::data_error lines("\xc3\xa9t\xc3\xa9:\n\tfirst", "");
  CHECK(lines.message() == "\xc3\xa9t\xc3\xa9:\n\tfirst");   // text in other languages, and of several lines, is kept
}

TEST_CASE("status line: only its own control characters reach a terminal") {
  for (const auto& h : names()) {
    const std::string& name = h.text;
    CAPTURE(h.what);
    for (const auto kind : {mr::status_line_options::output::plain, mr::status_line_options::output::terminal}) {
      const temporary_folder folder;
      const descriptor screen(folder / "screen");
      mr::status_line line({.file = screen.file, .kind = kind, .columns = 20'000});
      line.write(row_named(name));
      line.tick({});
      line.close();
      std::string text = content_of(folder / "screen");
      for (const std::string_view own : {"\r", "\x1b[K", "\x1b[2m", "\x1b[0m"})
        for (std::size_t at = 0; (at = text.find(own, at)) != std::string::npos;) text.erase(at, own.size());
      const char* const wrong = obeyed_by_a_terminal(text);
      CHECK_MESSAGE(!wrong, wrong);
      CHECK(std::count(text.begin(), text.end(), '\n') == 2);   // the message, the line
    }
  }
}

TEST_CASE("JSON lines and TensorBoard: a line and an event each, with the name as UTF-8") {
  for (const auto& h : names()) {
    const std::string& name = h.text;
    CAPTURE(h.what);
    const temporary_folder folder;
    {
      mr::log out(mr::json_lines(folder / "run.jsonl"), mr::tensorboard(folder / "events"));
      CHECK(out.push(row_named(name)));
      out.close();
    }
    CHECK(folder.file_count() == 2);
    const std::string lines = content_of(folder / "run.jsonl");
    CHECK(std::count(lines.begin(), lines.end(), '\n') == 1);
    const char* const wrong = obeyed_by_a_terminal(lines);
    CHECK_MESSAGE(!wrong, wrong);
    CHECK(json_has(lines, as_utf8(name)));

    const std::filesystem::path events = std::filesystem::directory_iterator(folder / "events")->path();
    const std::string file = content_of(events.string());
    std::vector<std::string_view> records;
    for (std::string_view rest = file; rest.size() >= 16;) {
      std::uint64_t size = 0;
      std::memcpy(&size, rest.data(), sizeof size);
      REQUIRE(size <= rest.size() - 16);
      records.push_back(rest.substr(12, static_cast<std::size_t>(size)));
      rest.remove_prefix(16 + static_cast<std::size_t>(size));
    }
    REQUIRE(records.size() == 2);
    const std::string clean = as_utf8(name);
    mr::detail::protobuf_message tag;
    tag.add_bytes(1, clean);
    CHECK(records[1].find(tag.bytes()) != std::string_view::npos);
  }
}

TEST_CASE("a log reports once why a sink failed, and no name in it is obeyed") {
  struct broken final : mr::sink {
    explicit broken(std::string of) : sink_name(std::move(of)) {}
    const char* name() const noexcept override { return "broken"; }
    void write(const mr::row&) override { throw std::runtime_error("cannot take '" + sink_name + "'"); }
    std::string sink_name;
  };
  for (const auto& h : names()) {
    CAPTURE(h.what);
    const std::string printed = captured_stderr([&] {
      mr::log out(broken(h.text));
      out.message("text");
      out.close();
    });
    CHECK(printed.find("sink failed") != std::string::npos);
    const char* const wrong = obeyed_by_a_terminal(printed);
    CHECK_MESSAGE(!wrong, wrong);
  }
}

TEST_CASE("reports: text, JSON, page and trace show a name, and do not interpret it") {
  for (const auto& h : names()) {
    const std::string& name = h.text;
    CAPTURE(h.what);
    const mr::run_report r = report_named(name);
    const std::string text = mr::text_report(r), json = mr::json_report(r), page = mr::html_report(r),
                      trace = mr::chrome_trace(r.events);
    for (const std::string* one : {&text, &json, &page, &trace}) {
      const char* const wrong = obeyed_by_a_terminal(*one);
      CHECK_MESSAGE(!wrong, wrong);
    }
    CHECK(json_has(json, as_utf8(name)));
    CHECK(json_has(trace, as_utf8(name)));
    for (const char* tag : {"<script", "\" onload", "&lt;&amp;<"}) CHECK(page.find(tag) == std::string::npos);
    const auto brackets = std::count(page.begin(), page.end(), '<');
    CHECK(brackets == std::count(page.begin(), page.end(), '>'));
  }
}

TEST_CASE("quarantine list: every name is restored unchanged, and is one line") {
  const temporary_folder folder;
  const std::string path = folder / "lists/q.jsonl";
  {
    mr::quarantine_list list(path);
    for (const auto& h : names()) {
      const std::string& name = h.text;
      CAPTURE(h.what);
      CHECK(list.add({.shard = "in/" + name, .key = name, .offset_bytes = 1, .stage = name, .reason = name}));
    }
  }
  const std::string text = content_of(path);
  CHECK(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) == names().size());
  const char* const wrong = obeyed_by_a_terminal(text);
  CHECK_MESSAGE(!wrong, wrong);
  mr::quarantine_list again(path);
  const mr::key_list keys = mr::keys_from(std::vector<std::string>{path});
  for (const auto& h : names()) {
    const std::string& name = h.text;
    CAPTURE(h.what);
    CHECK(!again.add({.shard = "elsewhere/" + name, .key = name}));
    CHECK(keys.contains(name, "any/" + name));
  }
  CHECK(folder.file_count() == 1);   // lists/
}
