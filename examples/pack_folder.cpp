// Packs a folder tree CLASS/NAME.jpg into tar shards: field jpg contains the file, cls the class as a number.
//
//   pack_folder photos 'out/train-%06d.tar'          # also writes out/classes.txt: line 0 names class 0, and so on
//   pack_folder photos 'out/train-%06d.tar' --restarts-per-row auto       # crops decode faster: see restart_choice.hpp
//
// The order of the files is random, with --shuffle as its seed; the same seed writes the same bytes. If files were
// sorted by class, a shard would contain one class only, and a training that shuffles within a window would see one
// class at a time. Classes are the folders in FOLDER, sorted by their bytes. A link to a folder counts as a class
// there. Links further down are not followed, which avoids cycles. Hidden files and folders are ignored. Control
// characters in names become '_'. A file of more than --max-file-bytes is an error before it is read. With
// --restarts-per-row files become baseline JPEGs with restart markers and the same coefficients, on all cores. A file
// for which that is impossible, for example a damaged one, is named and packed unchanged.
#include "command_line.hpp"
#include "restart_choice.hpp"

#include <millrace/base/machine.hpp>
#include <millrace/base/random.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>

#include <tbb/parallel_pipeline.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <unistd.h>
#include <unordered_set>

namespace fs = std::filesystem;
namespace mr = millrace;

namespace {

constexpr auto usage_text =
    "usage: pack_folder FOLDER PATTERN [--max-samples N] [--max-bytes N] [--shuffle SEED]\n"
    "                   [--max-file-bytes N] [--restarts-per-row N|auto]\n"
    "FOLDER contains a folder of JPEG files for each class; PATTERN names the shards, as in 'out/train-%06d.tar'";

struct file_to_pack {
  fs::path path{};
  std::string key{};
  std::size_t label = 0;
};

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

/// Replaces control characters by '_': keys must not contain them, and classes.txt has one line for each class.
std::string without_controls(std::string name) {
  std::replace_if(name.begin(), name.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '_');
  for (std::size_t at = 0; (at = name.find('\xc2', at)) != std::string::npos; ++at)   // U+0080 to U+009F in UTF-8
    if (at + 1 < name.size() && static_cast<unsigned char>(name[at + 1]) < 0xa0) name.replace(at, 2, "_");
  return name;
}

/// Returns a key without dots, because readers separate key and field at the first dot.
std::string make_key(const fs::path& relative) {
  std::string key = without_controls(relative.parent_path() / relative.stem());
  std::replace(key.begin(), key.end(), '.', '_');
  return key;
}

std::vector<fs::path> class_folders(const fs::path& folder) {
  std::vector<fs::path> classes;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !is_hidden(entry.path())) classes.push_back(entry.path());
  std::sort(classes.begin(), classes.end());
  if (classes.empty())
    throw mr::setup_error("the folder '" + mr::printable(folder.string()) + "' has no folders in it",
                          "Name the folder that has one folder for each class");
  return classes;
}

std::vector<file_to_pack> list_files(const fs::path& folder, const std::vector<fs::path>& classes) {
  std::vector<file_to_pack> files;
  for (std::size_t label = 0; label < classes.size(); ++label)
    for (auto at = fs::recursive_directory_iterator(classes[label]); at != fs::recursive_directory_iterator(); ++at) {
      if (is_hidden(at->path())) at.disable_recursion_pending();
      else if (at->is_regular_file()) files.push_back({.path = at->path(), .label = label});
    }
  // The file system returns entries in any order.
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  std::unordered_set<std::string> keys;
  for (auto& file : files) {
    const std::string key = make_key(file.path.lexically_relative(folder));
    file.key = key;
    for (int n = 2; !keys.insert(file.key).second; ++n) file.key = key + "_" + std::to_string(n);
  }
  return files;
}

/// Readers refuse members of more than 1 GiB, and the complete file would be read into memory.
void check_size(const fs::path& path, std::uint64_t max_file_bytes) {
  if (const std::uintmax_t size_bytes = fs::file_size(path); size_bytes > max_file_bytes)
    throw mr::data_error("'" + mr::printable(path.string()) + "' has " + std::to_string(size_bytes) +
                             " bytes (expected: at most " + std::to_string(max_file_bytes) + ")",
                         "Move it away, or raise --max-file-bytes, and max_member_bytes where the shards are read");
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string data{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad())
    throw mr::io_error("cannot read '" + mr::printable(path.string()) + "'", "Check its permissions and the disk");
  return data;
}

struct packed_file {
  const file_to_pack* of = nullptr;
  std::string data{};
  std::string refusal{}, no_restarts{};   // the reason if it is not a JPEG, or has no restarts
};
using packed_pointer = std::shared_ptr<packed_file>;

void prepare(packed_file& file, const restart_choice& restarts) {
  const auto bytes = std::as_bytes(std::span(file.data));
  try {
    mr::read_jpeg_header(bytes);
  } catch (const mr::data_error& problem) {
    file.refusal = problem.message();
    return;
  }
  if (!restarts.enabled()) return;
  try {
    const auto transcoded = transcode::transcode_jpeg(bytes, restarts.coding());
    file.data.assign(reinterpret_cast<const char*>(transcoded.data()), transcoded.size());
  } catch (const mr::data_error& problem) {
    file.no_restarts = problem.message();
  }
}

/// Writes files in their order, and reports the first few that are skipped or unchanged.
class packer {
 public:
  packer(mr::shard_writer& shards, std::size_t files) : shards_(shards), files_(files) {}

  void write(const packed_file& file) {
    report("skipped", file, file.refusal, skipped);
    report("no restarts in", file, file.no_restarts, without_restarts);
    if (file.refusal.empty())
      shards_.write(file.of->key, {{"jpg", file.data}, {"cls", std::to_string(file.of->label)}});
    if (++done_ == files_ || done_ % (on_terminal_ ? 100 : 10'000) == 0)
      std::fprintf(stderr, "%s%zu of %zu files%s", on_terminal_ ? "\r" : "", done_, files_,
                   on_terminal_ && done_ != files_ ? "" : "\n");
  }

  std::uint64_t skipped = 0, without_restarts = 0;

 private:
  static void report(const char* event, const packed_file& file, const std::string& why, std::uint64_t& count) {
    if (!why.empty() && count++ < 5)
      std::fprintf(stderr, "%s %s: %s\n", event, mr::printable(file.of->path.string()).c_str(), why.c_str());
  }

  mr::shard_writer& shards_;
  std::size_t files_, done_ = 0;
  bool on_terminal_ = ::isatty(STDERR_FILENO) == 1;
};

/// Reads and writes one file at a time, in order; all cores transcode concurrently.
void pack_files(const std::vector<file_to_pack>& files, std::uint64_t max_file_bytes, const restart_choice& restarts,
                packer& to) {
  using tbb::filter_mode;
  std::size_t next = 0;
  const auto read = [&](tbb::flow_control& control) -> packed_pointer {
    if (next == files.size()) {
      control.stop();
      return nullptr;
    }
    const auto& file = files[next++];
    check_size(file.path, max_file_bytes);
    return std::make_shared<packed_file>(packed_file{.of = &file, .data = read_file(file.path)});
  };
  const auto work = [&](packed_pointer file) {
    prepare(*file, restarts);
    return file;
  };
  const auto write = [&](const packed_pointer& file) { to.write(*file); };
  tbb::parallel_pipeline(restarts.enabled() ? 2 * mr::usable_cores() + 2 : 1,
                         tbb::make_filter<void, packed_pointer>(filter_mode::serial_in_order, read) &
                             tbb::make_filter<packed_pointer, packed_pointer>(filter_mode::parallel, work) &
                             tbb::make_filter<packed_pointer, void>(filter_mode::serial_in_order, write));
}

void pack(command_line& args) {
  mr::shard_writer_options options;
  options.max_samples = args.number("--max-samples", options.max_samples);
  options.max_bytes = args.number("--max-bytes", options.max_bytes);
  const auto seed = args.number("--shuffle", std::uint64_t{0});
  const auto max_file_bytes = args.number("--max-file-bytes", std::uint64_t{1} << 30);
  const restart_choice restarts = read_restarts(args);
  const auto names = args.rest();
  if (names.size() != 2) args.refuse("expected the folder to pack and a pattern for the shards");
  options.pattern = names[1];
  mr::shard_writer shards(options);

  const auto classes = class_folders(names[0]);
  auto files = list_files(names[0], classes);
  mr::rng random({.seed = seed});
  for (std::size_t i = files.size(); i > 1; --i) std::swap(files[i - 1], files[random.below(i)]);

  const fs::path out = fs::path(options.pattern).parent_path();
  if (!out.empty()) fs::create_directories(out);
  packer to(shards, files.size());
  pack_files(files, max_file_bytes, restarts, to);
  const auto written = shards.close();
  if (written.samples == 0)
    throw mr::data_error("there is no JPEG file in these folders", "Check the name of the folder");

  std::ofstream list(out / "classes.txt");
  for (const auto& folder : classes) list << without_controls(folder.filename().string()) << '\n';
  if (!list.flush())
    throw mr::io_error("cannot write classes.txt next to the shards", "Check the free space of the disk");
  std::printf("%llu samples of %zu classes in %llu shards, %llu bytes; %llu files skipped\n",
              static_cast<unsigned long long>(written.samples), classes.size(),
              static_cast<unsigned long long>(written.shards), static_cast<unsigned long long>(written.bytes),
              static_cast<unsigned long long>(to.skipped));
  if (restarts.enabled())
    std::printf("%llu of them unchanged, without restarts\n", static_cast<unsigned long long>(to.without_restarts));
}

}   // namespace

int main(int argc, char** argv) { return run_program({argc, argv, usage_text}, pack); }
