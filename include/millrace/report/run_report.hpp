// The content of a report: the measurements and the conclusions from them.
//
//   mr::run_report r = mr::report_of(window, std::move(events));
//   r.facts.push_back({"commit", "20fbe65"});
//   std::fputs(mr::text_report(r).c_str(), stdout);        // report/print/text_report.hpp; json_report, html_report
//
// `window` is the flow_statistics of a measured part of a run, and `events` is its timeline.
// Errors: none. Threads: not synchronized. Cost: report_of() runs for a few milliseconds, because it simulates the run
// with other numbers of workers.
#pragma once

#include <millrace/base/version.hpp>   // first, so that compiling with an older C++ standard prints a short error
#include <millrace/base/machine.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/measure/values/event_names.hpp>
#include <millrace/measure/values/timeline.hpp>
#include <millrace/report/verdict/knobs.hpp>
#include <millrace/report/verdict/verdict.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

// Counts the JPEGs of a run by decoder and by kind of file.
//
//   mr::picture_statistics p;
//   for (const mr::event_count& c : run.stats().counts) p.add(c);
//   std::printf("%.1f %% left to libjpeg, %.2f bytes per pixel\n", 100 * p.share(p.libjpeg()), p.bytes_per_pixel());
//
// Counts all JPEGs that were rendered since the start of the run, including JPEGs in batches that have not been
// delivered yet. Errors: none. Threads: not synchronized.

/// Counts of the JPEGs of a run, by decoder and by kind of file.
struct picture_statistics {
  /// A reason why libjpeg decoded images, with the number of images.
  struct reason {
    std::string why{};
    std::uint64_t pictures = 0;
  };

  /// Images that the built-in decoder decoded: together with other images, or one image alone.
  std::uint64_t own_together = 0, own_alone = 0;
  std::vector<reason> by_libjpeg{};   ///< reasons, in descending order of frequency
  std::uint64_t smaller = 0;          ///< decoded at 1/8, 2/8 or 4/8 of the size, by any decoder
  std::uint64_t progressive = 0;
  /// Crops for which the decoder skipped data before the crop: with stored entry points (places in the file at which
  /// decoding can begin), or with restart markers of the JPEG.
  std::uint64_t by_entries = 0, by_restarts = 0;
  std::uint64_t entries_refused = 0;     ///< images whose entry points belong to another file
  std::uint64_t damaged = 0;             ///< damaged images, decoded because of accept_damaged
  std::uint64_t warnings = 0;            ///< all warnings of libjpeg
  std::uint64_t bytes = 0, pixels = 0;   ///< bytes of the files; pixels at the stored size

  /// Adds an event count of JPEGs. Does nothing and returns false for any other event.
  bool add(const event_count& c);

  /// Returns the number of images that libjpeg decoded.
  std::uint64_t libjpeg() const noexcept;
  /// Returns the number of all images.
  std::uint64_t pictures() const noexcept { return own_together + own_alone + libjpeg(); }
  /// Returns of_them / pictures(), the share of all images (0..1); 0 if no image was counted.
  double share(std::uint64_t of_them) const noexcept;
  /// Returns the mean bytes per pixel of the files.
  double bytes_per_pixel() const noexcept;

 private:
  /// Returns the member that counts the event; null for an event that no member counts.
  std::uint64_t* sum_of(detail::event_name name) noexcept;
};

// The origin of a report: program, command line, machine and date.
//
//   mr::run_origin o = mr::run_origin::now();      // of this process
//   o.program;    // "train_images"
//   o.date;       // "2026-11-23 08:36:04 UTC"
//   o.command;    // "build/train_images --epochs 3"
//   o.machine;    // "AMD EPYC, 6.3 GB, Linux 6.1.0 on node7"
//
// All text is converted to plain ASCII. A command line may contain secrets. Clear run_report::origin.command before you
// publish a report. On systems other than Linux, members may be empty.
// Errors: none. Threads: any thread.

/// Program, date, command and machine of a run.
struct run_origin {
  std::string program{};   ///< name of the program without its folder
  std::string date{};      ///< time of the report, UTC
  std::string command{};   ///< command line, cut after 2,000 characters
  std::string machine{};   ///< processor, memory, system and host name

  /// Returns the origin of this process.
  static run_origin now();
};

namespace detail {

/// Returns the value of `word` in a file with lines of the form "word: value"; empty if no line has the word.
std::string line_of_process_after(const char* path, std::string_view word);

/// Returns the arguments of this process, each followed by a zero byte.
std::string arguments_of_this_process();

/// Returns the arguments as one line, cut after 2,000 characters. Puts arguments with special characters in single
/// quotes, as a shell requires. A shell cannot restore arguments that contain a single quote, a backslash, or a byte
/// that is not printable ASCII.
std::string command_line_of_run(std::string_view arguments);

}   // namespace detail

/// The content of a report: measurements, verdict, predictions and facts.
struct run_report {
  /// The speed with a given number of workers.
  struct point {
    std::size_t workers = 0;
    double samples_per_s = 0;
    bool measured = false;
  };
  /// The speed that an earlier run predicted for a change, and the speed that this run measured.
  struct checked_prediction {
    std::string change{};
    double predicted_samples_per_s = 0, measured_samples_per_s = 0;
  };

  flow_statistics statistics{};
  verdict conclusion{};
  std::vector<knob_gain> gains{};   ///< sorted by gain, largest first; among equal gains, those with `at_most` are last
  std::vector<point> scaling{};   ///< sorted by number of workers; speeds are predicted, except at the run's own number
  std::vector<checked_prediction> predictions{};
  timeline events{};
  picture_statistics pictures{};                              ///< since the start of the run, like `counts`
  std::vector<event_count> counts{};                          ///< events that are not errors, such as skipped members
  std::vector<std::pair<std::string, std::string>> facts{};   ///< machine, versions, digest
  std::string title = "millrace run";
  run_origin origin{};   ///< empty unless set; report_of(session) sets run_origin::now()
};

/// Returns the report for a window, which is a measured part of a run. Judges the window, predicts gains and simulates
/// the run in a few milliseconds.
run_report report_of(flow_statistics statistics, timeline events = {});

namespace detail {

/// Measures the cost of receiving rows from feeders (machines that compute rows), if the workers limit the run.
void measure_receiving_if_useful(flow_statistics& f);

/// Adds the event counts of the complete run, such as run.stats().counts, to a report.
void add_run_counts(run_report& r, const std::vector<event_count>& counts);

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/impl/run_report.inl>
#endif
