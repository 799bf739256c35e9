# kill -9 at random moments, to everything that writes files: acknowledged records must exist, and no reader may accept
# partial ones.
#
#   python3 tests/system/kills/kills.py                              # 10,000 kills
#   python3 tests/system/kills/kills.py --kills 500 --only indexes --seed 7
#
# kills_subject.cpp writes. It acknowledges a record through a pipe when add(), flush(), close(), commit() or a similar
# call returns. The moment of a kill is uniform over the duration of a complete run of that kind. After each kill, the
# library's own readers check the folder, and another run continues in it. After some kills, a run completes without a
# kill: it must succeed, and remove the temporary files of the killed runs.
#
# This does not test that files reached the disk, because the kernel survives.
#
#   python3 tests/system/kills/kills.py --planted --kills 400        # detects bugs planted in copies of headers
import argparse
import contextlib
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import JOBS, ROOT, Report, in_parallel, linked_program
from planting import Edit, plant

HERE = pathlib.Path(__file__).resolve().parent
RUN_LIMIT_SECONDS = 900   # only guards against hangs
NEEDS_DATA = ("indexes", "checksums", "set_indexes", "sessions")
MAX_RECORDS = 700   # per folder: checksums exist for 800 members
MAX_PROBLEMS = 3


# (the kind that fails, the planted bug)
PLANTED = [
    ("json_lines", [Edit("io/file/append_file", "record.data() + done, record.size() - done);",
                         "record.data() + done, (record.size() - done + 1) / 2);"),
                    Edit("train/impl/json_lines.inl", "detail::repair_last_line(file_);", "")]),
    ("quarantine", [Edit("io/file/append_file", "record.data() + done, record.size() - done);",
                         "record.data() + done, (record.size() - done + 1) / 2);"),
                    Edit("sources/impl/keys_from.inl", "} else if (is_cut_entry(*next, file_bytes)) {",
                         "} else if (false) {")]),
    ("tensorboard", [Edit("train/impl/tensorboard.inl", "if (::access(path.c_str(), F_OK) != 0) return "
                          "detail::append_file({.path = path, .must_be_new = true});",
                          'return detail::append_file({.path = folder + "/events.out.tfevents"});'),
                     Edit("io/file/append_file", "record.data() + done, record.size() - done);",
                          "record.data() + done, (record.size() - done + 1) / 2);")]),
    ("notes", [Edit("io/file/atomic_file.hpp", """  void commit() {
                                                  flush();""",
                    """  void commit() {
                         files_.rename(temporary_.c_str(), path_.c_str());
                         flush();
                         temporary_ = path_;""")]),
    ("shards", [Edit("io/tar/write/shard_writer.hpp", "if (std::exchange(cleaned_, folder) != folder)",
                     "if (std::exchange(cleaned_, folder) == folder)")]),
    ("shards", [Edit("io/file/atomic_file.hpp", 'folder_ + "." + path_', "folder_ + path_"),
                Edit("io/file/atomic_file.hpp", '".partial"', '".partial.tar"')]),
    ("indexes", [Edit("io/index/format/impl/index_file.inl", "replacement.append(detail::index_bytes(index));",
                      "const auto all = detail::index_bytes(index); "
                      "unique_fd(::open(path.c_str(), O_TRUNC | O_WRONLY)); replacement.append(all);")]),
    ("indexes", [Edit("io/index/set/impl/index_build.inl", "clean_folder_of(index_file);", "")]),
    ("checksums", [Edit("io/index/format/impl/index_file.inl", "if (!has_new) return result;",
                        "if (!has_new || index.known_checksums() % 16 == 9) return result;")]),
    ("set_indexes", [Edit("sources/prepare/impl/write_set_index.inl", "return of_file == name;",
                          "return of_file == name + '.';")]),
    ("reports", [Edit("report/print/impl/write_reports.inl", "file.commit();",
                      "file.publish(); std::ofstream(path_without_ending + ending) << text;"),
                 Edit("report/print/impl/write_reports.inl", "#include <millrace/io/file/atomic_file.hpp>",
                      "#include <millrace/io/file/atomic_file.hpp>\n#include <fstream>")]),
    ("cache", [Edit("io/cache/impl/cache_ledger.inl", "if (!remove_unused(entry.path)) used += entry.bytes;",
                    "used += entry.bytes;")]),
    ("cache", [Edit("io/cache/impl/cache_ledger.inl", "write_used(used + needed);", "")]),
    ("cache", [Edit("io/cache/impl/cache_folder.inl",
                    "int reason = write_exactly(turn.part_.get(), text.size(), data);",
                    "int reason = write_exactly(turn.part_.get(), 0, detail::bytes_of(text)); "
                    "ledger_.publish(turn.path_ + \".part\", turn.path_); "
                    "reason = write_exactly(turn.part_.get(), text.size(), data);")]),
]


def built(folder, planted=None):
    """The program, compiled with the headers in the folder `planted` instead of the tree's."""
    return linked_program(folder / "kills_subject", sorted(HERE.glob("*.cpp")), level="-O0" if planted else "-O1",
                          planted=planted)


class Checker:
    """A process that checks folders."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "check"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def records(self, kind, folder, acknowledged):
        """(number of records, None) or (None, problem)."""
        print(kind, folder, acknowledged, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip() or "the checker has ended"
        word, _, number = answer.partition(" ")
        return (int(number), None) if word == "records" and number.isdigit() else (None, answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Kind:
    """One kind of files, with its results."""

    def __init__(self, program, data, folder, name, cleans, seed):
        self.program, self.data, self.folder, self.name, self.cleans = program, data, folder, name, cleans
        self.random = random.Random(f"{seed} {name}")
        self.kills = self.ends = self.temporary = self.chains = 0
        self.problems = []

    def begin(self):
        """A folder before the first write."""
        place = self.folder / f"{self.name}-{self.chains}"
        self.chains += 1
        place.mkdir()
        if self.name in NEEDS_DATA:
            for shard in self.data.iterdir():
                shutil.copy2(shard, place)
        return place

    def write(self, place, first, delay=None):
        """(whether it was killed, number of safe records, problem). Without a delay it is not killed."""
        with subprocess.Popen([self.program, "write", self.name, place, str(first)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            limit = threading.Timer(RUN_LIMIT_SECONDS, process.kill)
            limit.start()
            try:
                if delay is not None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(delay)
                    process.kill()
                # The pipe can buffer the complete output.
                stdout, stderr = process.communicate()
            finally:
                limit.cancel()
        killed = process.returncode == -9 and delay is not None
        numbers = [int(line) for line in stdout.split()]
        problem = None
        if numbers != list(range(first, first + len(numbers))):
            problem = f"it acknowledged {numbers[:5]}..., expected {first}..."
        elif not killed and process.returncode != 0:
            problem = f"exit status {process.returncode}: {stderr.decode(errors='replace').strip()}"
        return killed, first + len(numbers), problem

    def usual_seconds(self):
        def one_run():
            place = self.begin()
            started = time.monotonic()
            problem = self.write(place, 0)[2]
            shutil.rmtree(place)
            if problem:
                self.problems.append(f"a run without a kill: {problem}")
            return time.monotonic() - started
        return min(one_run() for _ in range(3))

    def partials(self, place):
        return [path.name for ending in (".*.partial", "*.part") for path in place.rglob(ending)]

    def chain(self, checker, seconds, max_kills):
        """Kills in one folder, then a complete run."""
        place, records = self.begin(), 0
        for left in reversed(range(max_kills + 1)):
            delay = self.random.uniform(0, seconds) if left > 0 and records < MAX_RECORDS else None
            killed, safe, problem = self.write(place, records, delay)
            self.kills += killed
            self.ends += not killed
            self.temporary += bool(killed and self.partials(place))
            if not problem:
                records, problem = checker.records(self.name, place, safe)
            if not problem and delay is None and self.cleans and self.partials(place):
                problem = f"a complete run leaves {self.partials(place)[:3]}"
            if problem:
                self.problems.append(f"folder {self.chains - 1}, kill {self.kills} of seed and kind: {problem}")
            if problem or delay is None:
                break
        shutil.rmtree(place)

    def run(self, kill_count):
        checker = Checker(self.program)
        seconds = self.usual_seconds()
        while self.kills < kill_count and len(self.problems) < MAX_PROBLEMS:
            self.chain(checker, seconds, min(kill_count - self.kills, self.random.randint(1, 12)))
        checker.close()
        return seconds


def kinds_of(program, folder, options):
    (folder / "data").mkdir(parents=True)
    subprocess.run([program, "data", folder / "data"], check=True)
    listed = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout
    return [Kind(program, folder / "data", folder, name, cleans == "1", options.seed)
            for name, cleans in (line.split() for line in listed.splitlines()) if options.only in (None, name)]


def kill_all(report, folder, options):
    kinds = kinds_of(built(ROOT / "build" / "kills"), folder, options)
    if not kinds:
        report.add("kills", f"there is no kind {options.only}")
        return
    for kind, seconds in in_parallel(lambda kind: kind.run(-(-options.kills // len(kinds))), kinds, options.jobs):
        report.add(f"{kind.name}: {kind.kills} kills within {1e3 * seconds:.0f} ms, {kind.temporary} of them with "
                   f"a temporary file left; {kind.ends} runs completed", "\n".join(kind.problems))
    print(f"result: kills={sum(kind.kills for kind in kinds)}")


def try_planted(report, folder, options):
    for number, (name, edits) in enumerate(PLANTED):
        if options.only not in (None, name):
            continue
        place = folder / str(number)
        plant(edits, place / "include")
        program = built(place, place / "include")
        kind, = kinds_of(program, place / "runs", argparse.Namespace(only=name, seed=options.seed))
        kind.run(options.kills)
        failure = kind.problems[0][:150] if kind.problems else ""
        report.add(f"{edits[0].file}: {name} failed after {kind.kills} kills: {failure}",
                   None if failure else f"{name} passes despite {kind.kills} kills")


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--kills", type=int, default=10_000, help="of all kinds together")
    words.add_argument("--only", help="one kind")
    words.add_argument("--seed", default="1")
    words.add_argument("--jobs", type=int, default=JOBS)
    words.add_argument("--planted", action="store_true", help="number of kills for each planted bug")
    options = words.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="millrace-kills-") as name:
        if options.planted:
            try_planted(report, pathlib.Path(name), options)
        else:
            kill_all(report, pathlib.Path(name), options)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
