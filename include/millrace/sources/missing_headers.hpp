// Declares names of headers that millrace.hpp does not include. If a program uses such a name, the compiler reports the
// header to include.
//
//   mr::png(r["png"]);   // error: ... is unavailable: millrace: this name needs #include <millrace/pictures.hpp>
//
// Each function is declared here again, with a parameter to which any argument converts. The conversion is an error
// unless the right header is included. For types, and for calls with options in braces, the compiler shows a line of
// this file. A comment at the end of the line names the header. Overload resolution never prefers these declarations to
// the real ones.
// Cost: declarations only.
#pragma once

// clang-format off: attributes before a declaration

#include <millrace/base/version.hpp>

#include <millrace/flow/diagnose.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/io/file/storage.hpp>

#include <concepts>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

struct keys_from_options;
struct files_options;
struct lines_options;
struct token_files_options;
struct png_options;
struct webp_options;
struct wav_options;
struct remote_options;
struct grid_options;
struct run_report;

class audio;            // millrace: #include <millrace/audio.hpp>
struct packed;          // millrace: #include <millrace/text.hpp>
class interleaved;      // millrace: #include <millrace/pictures.hpp>
class line;             // millrace: #include <millrace/lines.hpp>
class mosaic_picture;   // millrace: #include <millrace/pictures.hpp>
class padded_picture;   // millrace: #include <millrace/pictures.hpp>
class patch_list;       // millrace: #include <millrace/pictures.hpp>
class picture_list;     // millrace: #include <millrace/pictures.hpp>
class ragged_picture;   // millrace: #include <millrace/pictures.hpp>
class rgba_picture;     // millrace: #include <millrace/pictures.hpp>
class u16_picture;      // millrace: #include <millrace/pictures.hpp>

namespace detail {

/// A type whose header is included.
template <class T>
concept is_complete = requires { sizeof(T); };

namespace diagnose {

// Parameter types to which any argument converts. The conversion is an error unless the right header is included.
struct needs_shards {
  template <class T, class Marker = keys_from_options>
    requires(!is_complete<Marker>)
  __attribute__((unavailable("millrace: this name needs #include <millrace/shards.hpp>")))
  needs_shards(T&&);
};
struct needs_files {
  template <class T, class Marker = files_options>
    requires(!is_complete<Marker>)
  __attribute__((unavailable("millrace: this name needs #include <millrace/files.hpp>")))
  needs_files(T&&);
};
struct needs_lines {
  template <class T, class Marker = lines_options>
    requires(!is_complete<Marker>)
  __attribute__((unavailable("millrace: this name needs #include <millrace/lines.hpp>")))
  needs_lines(T&&);
};
struct needs_text {
  template <class T, class Marker = token_files_options>
    requires(!is_complete<Marker>)
  __attribute__((unavailable("millrace: this name needs #include <millrace/text.hpp>")))
  needs_text(T&&);
};
struct needs_pictures {
  template <class T, class Marker = png_options>
    requires(!is_complete<Marker>)
  __attribute__((unavailable("millrace: this name needs #include <millrace/pictures.hpp>")))
  needs_pictures(T&&);
};
struct needs_webp {
  template <class T, class Marker = webp_options>
    requires(!is_complete<Marker>)
  __attribute__((unavailable("millrace: this name needs #include <millrace/adapt/webp.hpp>")))
  needs_webp(T&&);
};
struct needs_audio {
  template <class T, class Marker = wav_options>
    requires(!is_complete<Marker>)
  __attribute__((unavailable("millrace: this name needs #include <millrace/audio.hpp>")))
  needs_audio(T&&);
};
struct needs_metrics {
  template <class T, class Marker = grid_options>
    requires(!is_complete<Marker>)
  __attribute__((unavailable("millrace: this name needs #include <millrace/metrics.hpp>")))
  needs_metrics(T&&);
};
struct needs_report {
  template <class T, class Marker = run_report>
    requires(!is_complete<Marker>)
  __attribute__((unavailable("millrace: this name needs #include <millrace/report.hpp>")))
  needs_report(T&&);
};
/// Replaces the options of a source in calls such as files(names, {.seed = 1}).
struct only_a_seed {
  std::uint64_t seed = 0;
};

}  // namespace diagnose

}  // namespace detail

detail::broken_flow files(detail::diagnose::needs_files);   // millrace: #include <millrace/files.hpp>
detail::broken_flow files(detail::diagnose::needs_files, detail::diagnose::only_a_seed);
detail::broken_flow lines(detail::diagnose::needs_lines);   // millrace: #include <millrace/lines.hpp>
detail::broken_flow lines(detail::diagnose::needs_lines, detail::diagnose::only_a_seed);
detail::broken_flow token_files(detail::diagnose::needs_text);   // millrace: #include <millrace/text.hpp>
detail::broken_flow token_files(detail::diagnose::needs_text, detail::diagnose::only_a_seed);
detail::broken_batch keys_from(detail::diagnose::needs_shards);       // millrace: #include <millrace/shards.hpp>
detail::broken_batch folder_classes(detail::diagnose::needs_files);   // millrace: #include <millrace/files.hpp>
picture png(detail::diagnose::needs_pictures);             // millrace: #include <millrace/pictures.hpp>
picture pnm(detail::diagnose::needs_pictures);             // millrace: #include <millrace/pictures.hpp>
picture any_picture(detail::diagnose::needs_pictures);     // millrace: #include <millrace/pictures.hpp>
picture webp(detail::diagnose::needs_webp);                // millrace: #include <millrace/adapt/webp.hpp>
detail::broken_batch wav(detail::diagnose::needs_audio);   // millrace: #include <millrace/audio.hpp>
void write_reports(detail::diagnose::needs_report, detail::diagnose::needs_report);   // millrace/report.hpp
void save_grid(detail::diagnose::needs_metrics, detail::diagnose::needs_metrics);     // millrace/metrics.hpp
/// Overload for programs that do not include millrace/adapt/remote.hpp. The compiler shows the message of the
/// attribute.
template <class Marker = remote_options>
  requires(!detail::is_complete<Marker>)
__attribute__((unavailable("millrace: this name needs #include <millrace/adapt/remote.hpp>")))
storage remote();

}}  // namespace millrace
