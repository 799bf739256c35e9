#include "../sample_statistics.hpp"
#include <millrace/image/values/jpeg_refusal.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/report/print/charts.hpp>
#include <millrace/report/print/json_report.hpp>
#include <millrace/report/print/html_report.hpp>
#include <millrace/report/print/text_report.hpp>
#include <millrace/report/print/write_reports.hpp>
#include <millrace/report/saved_predictions.hpp>

#include "../../../../bench/parts/bound_verdict.hpp"
#include "../../../../bench/parts/step_log.hpp"
#include "../../../temporary_folder.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

namespace mr = millrace;
using mr::detail::event_name;
using mr::detail::event_of;
using mr::jpeg_refusal;

TEST_CASE("the text starts with the verdict, then the remedies, the stages and the gains") {
  mr::flow_statistics f = statistics_of({.work_s = 40});
  f.stages[1].service_ns.add(8'000'000, 5'000);
  mr::run_report r = mr::report_of(f);
  r.predictions.push_back({.change = "3 -> 4 workers", .predicted_samples_per_s = 510, .measured_samples_per_s = 500});
  r.facts.push_back({"cores", "16"});
  const std::string text = mr::text_report(r);
  CHECK(text.starts_with("VERDICT  CPU-bound in decode: the workers are the limit; reading could be 4.0 times as fast\n"
                         "         Use more workers"));
  CHECK(holds(text, "throughput 500 samples/s, data wait 80.0 %\n"));
  CHECK(holds(text, " workers x4           500 100.0 %   0.0 %   0.0 %   8.00 ms   8.00 ms  decode 70.0 %, resize "));
  CHECK(holds(text, " 4 -> 5 workers                   +25.0 %  workers\n"));
  CHECK(holds(text, " predicted before: 3 -> 4 workers 510 samples/s, measured 500\n"));
  CHECK(holds(text, "cores      16\n"));
}

TEST_CASE("a report replaces the previous one at once, and removes the temporary files of a killed process") {
  const temporary_folder folder;
  const mr::run_report r = mr::report_of(statistics_of({.work_s = 40}));
  mr::write_reports(r, folder / "report");
  const std::string kernel = mr::detail::kernel_id();
  const std::string left = folder / (".report.html." + kernel + "-7-0.partial"),
                    other = folder / (".reports.html." + kernel + "-7-0.partial");
  std::ofstream(left) << "half";
  std::ofstream(other) << "half";
  std::ifstream before(folder / "report.predictions");   // is not overwritten: the new one is another file
  mr::write_reports(mr::report_of(statistics_of({.work_s = 20})), folder / "report");
  const std::string previous{std::istreambuf_iterator<char>(before), {}};
  CHECK(previous == mr::detail::predictions_text(r));
  CHECK_FALSE(std::filesystem::exists(left));
  CHECK(std::filesystem::exists(other));
  CHECK(folder.file_count() == 6);
  mr::write_reports(r, folder / "runs/7/report");   // creates its folders
  CHECK(std::filesystem::exists(folder / "runs/7/report.html"));
  std::ofstream(folder / "file") << "x";
  CHECK_THROWS_WITH_AS(mr::write_reports(r, folder / "file/report"),
                       doctest::Contains("cannot create the folder"), mr::io_error);
}

TEST_CASE("a later run that has turned a knob shows the prediction for it next to its measurement") {
  const temporary_folder folder;
  mr::flow_statistics f = statistics_of({.read_s = 2, .work_s = 38});   // 4 workers, 500 samples/s
  f.usable_cores = 8;
  mr::write_reports(mr::report_of(f), folder / "earlier");
  const auto compared = [&](std::size_t workers, std::size_t batch, std::uint64_t samples) {
    mr::flow_statistics later = f;
    later.stages[1].concurrency = workers;
    later.batch_samples = batch;
    later.samples = samples;
    mr::run_report r = mr::report_of(later);
    mr::compare_with(folder / "earlier", r);
    return r;
  };
  const mr::run_report five = compared(5, 50, 6'100);
  REQUIRE(five.predictions.size() == 1);
  CHECK(five.predictions[0].change == "4 -> 5 workers");
  CHECK(five.predictions[0].predicted_samples_per_s == doctest::Approx(625).epsilon(0.03));
  CHECK(five.predictions[0].measured_samples_per_s == doctest::Approx(610));
  CHECK(holds(mr::text_report(five), " predicted before: 4 -> 5 workers 6"));
  CHECK(compared(3, 50, 3'700).predictions.at(0).predicted_samples_per_s == doctest::Approx(375).epsilon(0.03));
  CHECK(compared(4, 100, 5'000).predictions.at(0).change == "50 -> 100 samples per batch (at most)");
  CHECK(compared(4, 50, 5'000).predictions.empty());    // no setting was changed
  CHECK(compared(5, 100, 6'000).predictions.empty());   // two settings were
  mr::run_report r = mr::report_of(f);
  CHECK_THROWS_AS(mr::compare_with(folder / "nowhere", r), mr::io_error);
  CHECK_THROWS_AS(mr::compare_with(folder / "earlier.txt", r), mr::io_error);
  std::filesystem::copy_file(folder / "earlier.txt", folder / "other.predictions");
  CHECK_THROWS_AS(mr::compare_with(folder / "other", r), mr::data_error);
}

TEST_CASE("changes without an effect share a line, and no line is wider than 110 columns") {
  mr::flow_statistics f = statistics_of({.read_s = 2, .work_s = 40});
  f.usable_cores = 4;   // each has a worker, which is reported next to that change
  f.throttled_ns = 3'000'000;
  f.run_delay_ns = 12'000'000;
  mr::run_report r = mr::report_of(f);
  r.facts.push_back({"session", "host device, 4 workers; pixels [50, 224, 224, 3] u8, label [50] i32; memory: " +
                                    std::string("4 slots x 7.5 MB + read ahead 268 MB = 298 MB of 6.3 GB")});
  r.conclusion.advice =
    "The process runs more threads than there are cores: reduce the cost of reading or of other threads, or add cores";
  r.conclusion.evidence.push_back(
    "the slowest stage was busy 89.0 % of its time: stages alternate in waiting for each other, and deeper prefetch "
    "helps");
  const std::string text = mr::text_report(r);
  CAPTURE(text);
  CHECK(holds(text, " +0.0 %, still workers: storage twice as fast; step twice as fast; 2 -> 4 I/O threads;"));
  CHECK(holds(text, " 4 -> 5 workers                    +0.0 %  workers; all 4 usable cores already have a worker\n"));
  CHECK(holds(text, "machine    4 usable cores, throttled for 3.00 ms; threads that could run waited 12.0 ms for a "
                    "core\n"));
  CHECK(holds(text, "session    host device, 4 workers; pixels"));
  CHECK(holds(text, "\n           "));
  CHECK(holds(text, " the slowest stage was busy 89.0 % of its time: stages alternate in waiting for each other, and "
                    "deeper\n   prefetch helps\n"));
  std::size_t widest = 0, from = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; from = end + 1, end = text.find('\n', from))
    widest = std::max(widest, end - from);
  CHECK(widest <= 110);
}

TEST_CASE("the largest gain is first, and of two the firm one") {
  const mr::run_report r = mr::report_of(statistics_of({.read_s = 19, .work_s = 40}));
  REQUIRE(r.gains.size() > 3);
  CHECK(std::is_sorted(r.gains.begin(), r.gains.end(), [](const auto& a, const auto& b) { return a.gain > b.gain; }));
  const mr::run_report step_report = mr::report_of(statistics_of({.step_s = 40}));
  CHECK(step_report.gains[0].change == "step twice as fast");
  CHECK(step_report.gains[0].gain == step_report.gains[1].gain);
  CHECK(step_report.gains[1].at_most);
}

TEST_CASE("measured results replace predictions in the plot over workers") {
  const mr::run_report r = mr::report_of(statistics_of({.work_s = 40}));
  REQUIRE(r.scaling.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(r.scaling[i].workers == i + 1);
  CHECK(r.scaling[3].samples_per_s == doctest::Approx(500));
  for (std::size_t i = 0; i < 8; ++i) CHECK(r.scaling[i].measured == (i == 3));
  CHECK(times_in(mr::detail::scaling_chart(r), "measured") == 1);
  // As many as there are cores; more are unknown.
  mr::flow_statistics f = statistics_of({.work_s = 40});
  f.usable_cores = 6;
  CHECK(mr::report_of(f).scaling.size() == 6);
  // On crowded cores others get their share: here twelve threads with half a core each.
  f.stages[1].cpu_ns = in_ns(20);
  f.stages[1].run_delay_ns = in_ns(20);
  const mr::run_report crowded = mr::report_of(f);
  CHECK(crowded.scaling[4].samples_per_s == doctest::Approx(500 * 5.0 / 4 * 12 / 13));
  CHECK(crowded.gains[0].change == "decode at half the cost");
  f.throttled_ns = in_ns(10);
  CHECK(mr::report_of(f).scaling[5].samples_per_s == doctest::Approx(500));
  CHECK(r.scaling[0].samples_per_s == doctest::Approx(125).epsilon(0.03));
  CHECK(r.scaling[7].samples_per_s == doctest::Approx(1'000).epsilon(0.05));
}

TEST_CASE("text, page and JSON contain the host, the command, the time and the settings of a run") {
  mr::run_report r = mr::report_of(statistics_of({.work_s = 40}));
  CHECK(holds(mr::text_report(r), "\nrun        millrace run\n"));
  CHECK(holds(mr::json_report(r), R"("date":null,"command":null,"machine":null)"));
  CHECK_FALSE(holds(mr::html_report(r), "class=\"origin\""));
  r.title = "train";
  r.origin = {.program = "train", .date = "2026-11-23 08:36:04 UTC", .command = "./train --data 's-{0..7}.tar' '<a>'",
              .machine = "AMD EPYC, 6.3 GB, Linux 6.1.0 on node7"};
  r.statistics.usable_cores = 2;
  const std::string text = mr::text_report(r), page = mr::html_report(r);
  CAPTURE(text);
  CHECK(holds(text, "\nrun        train, 2026-11-23 08:36:04 UTC\ncommand    ./train --data 's-{0..7}.tar' '<a>'\n"
                    "machine    AMD EPYC, 6.3 GB, Linux 6.1.0 on node7; 2 usable cores, not throttled; "));
  CHECK(holds(mr::json_report(r), R"({"title":"train","date":"2026-11-23 08:36:04 UTC",)"
                                  R"("command":"./train --data 's-{0..7}.tar' '<a>'","machine":"AMD EPYC, )"));
  CHECK(holds(page, "<title>train, 2026-11-23 08:36:04 UTC</title>"));
  CHECK(holds(page, "<h1>train</h1>\n<p class=\"origin\">2026-11-23 08:36:04 UTC</p>\n"));
  CHECK(holds(page, "<code>./train --data 's-{0..7}.tar' '&lt;a&gt;'</code>"));
  CHECK(times_in(page, "node7") == 2);   // at the top, and with its setting of the run

  const mr::run_origin here = mr::run_origin::now();
  CHECK(here.date.size() == std::string_view("2026-11-23 08:36:04 UTC").size());
  CHECK(here.date.ends_with(" UTC"));
#if defined(__linux__)
  CHECK(here.program.find('/') == std::string::npos);
  CHECK_FALSE(here.program.empty());
  CHECK(holds(here.command, here.program));
  CHECK(holds(here.machine, ", Linux "));
#endif
  using namespace std::string_view_literals;
  CHECK(mr::detail::command_line_of_run("./a\0--b=c d\0\0x\n\0"sv) == "./a '--b=c d' '' 'x\\x0a'");
  CHECK(mr::detail::command_line_of_run(std::string(3'000, 'x')) == std::string(2'000, 'x') + " ...");
}

TEST_CASE("text and JSON contain the prediction for feeders") {
  mr::flow_statistics f = statistics_of({.work_s = 40});
  CHECK_FALSE(holds(mr::json_report(mr::report_of(f)), "\"feeders\""));
  f.delivered_bytes = f.samples * 10'000'000;
  f.receive_ns_per_byte = 0.4;
  const mr::run_report r = mr::report_of(f);
  CHECK(holds(mr::text_report(r), "\n feeders: 2.0 times, needs 80.0 Gb/s and 8 cores "));
  CHECK(holds(mr::html_report(r), "feeders: 2.0 times, needs 80.0 Gb/s"));
  const std::string json = mr::json_report(r);
  CHECK(holds(json, R"("feeders":{"times":2,"gbit_per_s":)"));
  CHECK(holds(json, R"("row_bytes":1e+07,"prepare_ns":8e+06,"receive_ns":4e+06,"next":"receiving"}})"));
}

TEST_CASE("without measurements the report is still written") {
  const mr::run_report r = mr::report_of({});
  CHECK(mr::text_report(r).starts_with("VERDICT  No verdict: only 0 batches were measured: expected at least 5\n"));
  CHECK(holds(mr::json_report(r), "\"bound_by\":\"Unknown\""));
  CHECK(holds(mr::html_report(r), "No verdict"));
  CHECK_FALSE(holds(mr::html_report(r), "<svg"));
  CHECK(mr::chrome_trace({}) == R"({"displayTimeUnit":"ms","traceEvents":[{"ph":"M","name":"process_name","pid":1,)"
                                R"("tid":1,"args":{"name":"millrace"}}]})" "\n");
}

TEST_CASE("unknown values are null, and values that are not finite too") {
  mr::flow_statistics f = statistics_of({.step_s = 10});
  f.stages = {f.stages.back()};   // a single limit: the next one is at infinity
  const std::string json = mr::json_report(mr::report_of(f));
  CHECK(holds(json, "\"margin\":null"));
  CHECK(holds(json, "\"storage_bytes\":null"));
  CHECK(holds(json, "\"device_gap_ns\":null"));
}

TEST_CASE("text, page and JSON name the decoder of the JPEGs, the reason for it, and the kinds of the files") {
  mr::run_report r = mr::report_of(statistics_of({.work_s = 40}));
  CHECK_FALSE(holds(mr::text_report(r), "JPEG"));
  CHECK_FALSE(holds(mr::html_report(r), "Pictures"));
  CHECK(holds(mr::json_report(r), "\"bytes_per_pixel\":null"));
  const auto counted = [](std::initializer_list<std::pair<event_name, std::uint64_t>> all) {
    std::vector<mr::event_count> counts{{.what = "dot files passed over", .times = 12}};
    for (const auto& [name, times] : all) counts.push_back({mr::detail::text_of(name), times});
    return counts;
  };
  mr::detail::add_run_counts(r, counted({{event_of(jpeg_refusal::sampling), 40}, {event_name::bytes, 5'100'000},
                                     {event_name::own_together, 1'500}, {event_name::warnings, 7},
                                     {event_of(jpeg_refusal::process), 440}, {event_name::pixels, 15'000'000},
                                     {event_name::progressive, 430}, {event_name::smaller, 1'000},
                                     {event_name::by_entries, 1'200}, {event_name::by_restarts, 160},
                                     {event_name::entries_refused, 2}, {event_name::own_alone, 20},
                                     {event_name::damaged, 3}}));
  CHECK(r.pictures.pictures() == 2'000);
  const std::string text = mr::text_report(r);
  CAPTURE(text);
  CHECK(holds(text, "images     2 000 JPEGs: built-in decoder, several at once 1 500 (75.0 %), alone 20 (1.0 %);\n"
                    "           libjpeg 480 (24.0 %): arithmetic or lossless 440, sampling 40; progressive 430 "
                    "(21.5 %);\n"
                    "           decoded smaller 1 000 (50.0 %); crops by entry points 1 200 (60.0 %);\n"
                    "           crops by restart markers 160 (8.0 %); entry points refused 2 (0.1 %);\n"
                    "           damaged and accepted 3 (0.1 %); warnings of libjpeg 7; 0.34 bytes per pixel\n"
                    "counted    dot files passed over 12\n"));
  const std::string page = mr::html_report(r);
  CHECK(holds(page, "2 000 JPEGs since the start, 0.34 bytes per pixel, warnings of libjpeg: 7</p>"));
  CHECK(holds(page, "<td>built-in decoder, several at once</td><td>1 500</td><td>75.0 %</td>"));
  CHECK(holds(page, "<td>libjpeg</td><td>480</td><td>24.0 %</td>"));
  CHECK(holds(page, "<td>libjpeg, because: sampling</td><td>40</td><td>2.0 %</td>"));
  CHECK(holds(page, "<td>progressive</td><td>430</td><td>21.5 %</td>"));
  CHECK(holds(page, "<td>crops by entry points</td><td>1 200</td><td>60.0 %</td>"));
  CHECK(holds(page, "dot files passed over 12"));
  CHECK(holds(mr::json_report(r),
              R"("pictures":{"jpegs":2000,"own_together":1500,"own_alone":20,"libjpeg":480,)"
              R"("libjpeg_reasons":{"arithmetic or lossless":440,"sampling":40},"smaller":1000,"progressive":430,)"
              R"("by_entries":1200,"by_restarts":160,"entries_refused":2,"damaged":3,"warnings":7,"bytes":5100000,)"
              R"("pixels":15000000,"bytes_per_pixel":0.34},"counts":{"dot files passed over":12})"));
  // The remedy is evidence where the processors are the limit.
  const std::string remedy = " 21.5 % of the JPEGs are progressive: they take over twice the "
                             "time; examples/repack converts them to baseline\n";
  CHECK(holds(text, remedy));
  mr::run_report step_report = mr::report_of(statistics_of({.step_s = 40}));
  mr::detail::add_run_counts(step_report,
                             counted({{event_of(jpeg_refusal::process), 9}, {event_name::progressive, 9}}));
  CHECK_FALSE(holds(mr::text_report(step_report), "repack"));
  CHECK(holds(mr::text_report(step_report), "progressive 9 (100.0 %)"));
}

TEST_CASE("external names stay text in the page and in the JSON") {
  mr::flow_statistics f = statistics_of({.work_s = 40});
  f.stages[1].phases[0].name = "<b>\"&";
  mr::run_report r = mr::report_of(f);
  r.title = "</title><script>";
  r.facts.push_back({"<i>", "a & b"});
  const std::string page = mr::html_report(r);
  CHECK_FALSE(holds(page, "<script>"));
  CHECK_FALSE(holds(page, "<b>"));
  CHECK(holds(page, "CPU-bound in &lt;b&gt;&quot;&amp;"));
  CHECK(holds(page, "a &amp; b"));
  CHECK(holds(mr::json_report(r), "\"where\":\"<b>\\\"&\""));
}

TEST_CASE("a trace has a row for each track, and an arrow from stage to stage of each batch") {
  mr::timeline t;
  const auto worker = t.add_track("worker 0"), copy = t.add_track("copy");
  t.spans.push_back({.track = worker, .name = "work", .start_ns = 1'000, .end_ns = 3'000, .batch = 7});
  t.spans.push_back({.track = worker, .name = "work", .start_ns = 3'000, .end_ns = 5'000, .batch = 7});
  t.spans.push_back({.track = copy, .name = "copy", .start_ns = 5'500, .end_ns = 6'500, .batch = 7});
  t.spans.push_back({.track = worker, .name = "work", .start_ns = 5'000, .end_ns = 6'000, .batch = 8});
  t.spans.push_back({.track = worker, .name = "wrong", .start_ns = 9, .end_ns = 8});
  t.counters.push_back({.name = "ready slots", .at_ns = 5'000, .value = 1});
  const std::string trace = mr::chrome_trace(t);
  CHECK(holds(trace, R"({"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"worker 0"}})"));
  CHECK(holds(trace, R"({"ph":"X","name":"work","pid":1,"tid":2,"ts":3,"dur":2,"args":{"batch":7}})"));
  // From the middle of the last work to the middle of the copy; a batch in a single stage has no arrow.
  CHECK(holds(trace, R"({"ph":"s","name":"batch","pid":1,"tid":2,"cat":"batch","id":7,"ts":4})"));
  CHECK(holds(trace, R"({"ph":"f","name":"batch","pid":1,"tid":3,"cat":"batch","id":7,"ts":6,"bp":"e"})"));
  CHECK(times_in(trace, "\"cat\":\"batch\"") == 2);
  CHECK(holds(trace, R"({"ph":"C","name":"ready slots","pid":1,"tid":1,"ts":5,"args":{"value":1}})"));
  CHECK_FALSE(holds(trace, "wrong"));
}

TEST_CASE("axes have at most six marks, at round numbers") {
  for (const double most : {0.003, 0.07, 0.9, 1.0, 3.1, 31.7, 100.0, 199.0, 4'392.0, 7e6}) {
    CAPTURE(most);
    const double step = mr::detail::chart_step(most);
    CHECK(most / step <= 5);
    CHECK(most / step > 1.9);
    double digits = step;
    while (digits < 0.99) digits *= 10;
    while (digits > 9.9) digits /= 10;
    CHECK((digits == doctest::Approx(1) || digits == doctest::Approx(2) || digits == doctest::Approx(5)));
  }
}

TEST_CASE("steps have the durations of a run's log, 16 of them the mean") {
  const temporary_folder folder;
  std::ofstream(folder / "train.jsonl") << "{\"step\":1,\"loss\":2.5}\n"   // unused here
                                        << "{\"samples\":300,\"samples_per_s\":100,\"data_wait\":0.5}\n"
                                        << "{\"samples\":100,\"samples_per_s\":50,\"data_wait\":0.0}\n";
  const bench::logged_steps log = bench::steps_of_log(folder / "train.jsonl");
  CHECK(log.sample_s == doctest::Approx((300 * 0.005 + 100 * 0.02) / 400));
  CHECK(log.factor(1) == doctest::Approx(4 * log.factor(0)));
  double sum = 0, first_half = 0;
  for (std::size_t i = 0; i < 16; ++i) (i < 8 ? first_half : sum) += log.factor(i + 16);
  CHECK(sum + first_half == doctest::Approx(16));
  CHECK(first_half == doctest::Approx(8));
  CHECK(bench::logged_steps{}.factor(7) == 1);
  CHECK_THROWS_AS(bench::steps_of_log(folder / "nowhere"), mr::setup_error);
}

TEST_CASE("ablations name the slowest part, and agree with the live run if that is right") {
  using mr::bound_by;
  const bench::ablated_rates usual{.step = 1'000, .transfer = 9'000, .cpu = 4'000, .io = 2'000, .raw_read = 2'200};
  const auto judged = [&](auto change) {
    bench::ablated_rates r = usual;
    change(r);
    return bench::judge_ablations(r);
  };
  CHECK(judged([](auto&) {}).what == bound_by::consumer);
  CHECK(judged([](auto&) {}).margin == doctest::Approx(2));
  CHECK(judged([](auto&) {}).next == "read");
  CHECK(judged([](auto& r) { r.transfer = 500; }).what == bound_by::transfer);
  CHECK(judged([](auto& r) { r.cpu = 500; }).where == "decode");
  CHECK(judged([](auto& r) { r.io = 500, r.raw_read = 520; }).what == bound_by::io);
  CHECK(judged([](auto& r) { r.io = 500; }).where == "unpack");   // so storage is not the limit
  CHECK(judged([](auto& r) { r.io = 500; }).what == bound_by::cpu);
  CHECK(judged([](auto& r) { r.cpu = 1'050; }).what == bound_by::balanced);
  const bench::ablation_verdict cpu = judged([](auto& r) { r.cpu = 500; });
  CHECK(bench::agree(cpu, {.what = bound_by::cpu}));
  CHECK(bench::agree(cpu, {.what = bound_by::cpu_starved}));
  CHECK_FALSE(bench::agree(cpu, {.what = bound_by::io}));
  CHECK(bench::agree(judged([](auto& r) { r.cpu = 850; }), {.what = bound_by::balanced, .margin = 1.05}));
  CHECK_FALSE(bench::agree(cpu, {.what = bound_by::balanced, .margin = 1.05}));   // here the next part is twice as fast
  const bench::ablation_verdict two = judged([](auto& r) { r.cpu = 1'050; });     // step and decode
  for (const bound_by either : {bound_by::consumer, bound_by::cpu, bound_by::cpu_starved, bound_by::balanced})
    CHECK(bench::agree(two, {.what = either}));
  CHECK_FALSE(bench::agree(two, {.what = bound_by::io}));
}
