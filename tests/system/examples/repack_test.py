# Runs repack as a user would, and reads its output with Python's tarfile. transcode/jpeg_transcoder_test.cpp tests the
# coefficients and pixels of the images.
#
#   python3 repack_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
import gzip
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
START_OF_FRAME = re.compile(rb"\xff[\xc0-\xc2\xc9\xca]\x00[\x0b\x11]\x08(..)(..)", re.DOTALL)


def run(name, *arguments):
    return subprocess.run([PROGRAMS / name, *map(str, arguments)], capture_output=True, text=True, timeout=900,
                          stdin=subprocess.DEVNULL)


def members(shard):
    """(name, bytes) of every member, in the shard's order."""
    with tarfile.open(shard) as tar:
        return [(member.name, tar.extractfile(member).read()) for member in tar]


def write(shard, contents):
    with tarfile.open(shard, "w") as tar:
        for name, data in contents:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def is_picture(name):
    return name.endswith((".jpg", ".jpeg"))


def coding(picture):
    """The byte of the frame's marker: 0xc0 is baseline."""
    return START_OF_FRAME.search(picture)[0][1]


def restarts(picture):
    return len(re.findall(rb"\xff[\xd0-\xd7]", picture))


def sorted_fields(contents):
    """In the order in which repack writes: samples in their order, the fields of each by name."""
    order = {name.partition(".")[0]: number for number, (name, _) in reversed(list(enumerate(contents)))}
    return sorted(contents, key=lambda member: (order[member[0].partition(".")[0]], member[0]))


def huffman_tables(picture):
    """{class and number of a DHT segment: numbers of code words by length, and the symbols}."""
    tables, at = {}, 2
    while picture[at + 1] != 0xda:
        end = at + 2 + int.from_bytes(picture[at + 2:at + 4], "big")
        segment = picture[at + 4:end] if picture[at + 1] == 0xc4 else b""
        while segment:
            length = 17 + sum(segment[1:17])
            tables[segment[0]] = segment[1:length]
            segment = segment[length:]
        at = end
    return tables


class Repack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.data = cls.folder / "in"
        done = run("make_shapes", cls.data, "--samples", 1200, "--shards", 6)
        assert done.returncode == 0, done.stderr
        cls.shards = sorted(cls.data.glob("train-*.tar"))
        cls.pictures = [data for shard in cls.shards for name, data in members(shard) if is_picture(name)]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def repack(self, shards, out, *arguments, fails=False):
        done = run("repack", shards, self.folder / out, *arguments)
        self.assertEqual(done.returncode != 0, fails, done.stdout + done.stderr)
        return done.stderr if fails else done.stdout

    def outputs(self, pattern):
        return sorted(self.folder.glob(pattern))

    def assert_same_bytes(self, ours, theirs):
        self.assertEqual([path.name for path in ours], [path.name for path in theirs])
        for one, other in zip(ours, theirs):
            self.assertEqual(one.read_bytes(), other.read_bytes(), one.name)

    def test_order_keys_and_other_fields_stay_and_pictures_become_baseline(self):
        line = self.repack(self.data / "train-{000..005}.tar", "complete/train-%03d.tar").splitlines()
        progressive = sum(coding(picture) == 0xc2 for picture in self.pictures)
        self.assertGreater(progressive, 50)
        self.assertEqual(len(line), 1)
        self.assertIn("1200 samples in 6 shards, 0 shards were finished; 1200 images", line[0])
        self.assertIn(f"of them {progressive} progressive, 0 arithmetic, 0 resized, 0 damaged", line[0])
        for before, after in zip(self.shards, self.outputs("complete/*.tar"), strict=True):
            self.assertEqual(before.name, after.name)
            for (name, old), (new_name, new) in zip(members(before), members(after), strict=True):
                self.assertEqual(name, new_name)
                if not is_picture(name):
                    self.assertEqual(old, new)
                    continue
                self.assertEqual(coding(new), 0xc0)
                self.assertEqual(START_OF_FRAME.search(old)[0][4:], START_OF_FRAME.search(new)[0][4:])
                if coding(old) == 0xc0:
                    self.assertLessEqual(len(new), len(old))

    def test_any_number_of_threads_and_a_second_time_give_the_same_bytes(self):
        for threads in (1, 2, 7):
            self.repack(self.data / "train-{000..002}.tar", f"threads{threads}/%d.tar", "--threads", threads)
        self.assert_same_bytes(self.outputs("threads2/*.tar"), self.outputs("threads1/*.tar"))
        self.assert_same_bytes(self.outputs("threads7/*.tar"), self.outputs("threads1/*.tar"))
        self.repack(self.folder / "threads1", "again/%d.tar")
        self.assert_same_bytes(self.outputs("again/*.tar"), self.outputs("threads1/*.tar"))

    def test_a_run_that_is_killed_goes_on_behind_its_last_shard(self):
        self.kill_and_go_on("restarts", "--restarts-per-row", 2)

    def test_a_run_with_codes_that_is_killed_goes_on_with_the_same_codes(self):
        self.kill_and_go_on("codes", "--restarts-per-row", "auto", "--codes")

    def kill_and_go_on(self, name, *options):
        shards = self.data / "train-{000..005}.tar"
        unbroken, broken = f"{name}-unbroken/%02d.tar", f"{name}-broken/%02d.tar"
        self.repack(shards, unbroken, *options)
        killed = 0
        command = [PROGRAMS / "repack", shards, self.folder / broken, "--threads", "1", *map(str, options)]
        # Interrupts before the first output, while codes are computed, and after some shards.
        for seconds in (0.01, 0.05, 0.2):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(seconds)
            killed += process.poll() is None
            process.kill()
            process.wait()
        for condition in ("*.repack", 1, 2, 4):
            before = {path: path.stat().st_mtime_ns for path in self.outputs(f"{name}-broken/*.tar")}
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while process.poll() is None and not (
                    self.outputs(f"{name}-broken/{condition}") if isinstance(condition, str) else
                    len(self.outputs(f"{name}-broken/*.tar")) >= condition):
                time.sleep(0.001)
            killed += process.poll() is None
            process.kill()
            process.wait()
            self.assertEqual({path: path.stat().st_mtime_ns for path in before}, before)
            finished = self.outputs(f"{name}-broken/*.tar")
            self.assert_same_bytes(finished, self.outputs(f"{name}-unbroken/*.tar")[:len(finished)])
        self.assertGreater(killed, 0)
        count = len(self.outputs(f"{name}-broken/*.tar"))
        line = self.repack(shards, broken, *options)
        self.assertIn(f"{1200 - 200 * count} samples in {6 - count} shards, {count} shards were finished", line)
        self.assert_same_bytes(self.outputs(f"{name}-broken/*.tar"), self.outputs(f"{name}-unbroken/*.tar"))
        self.assertEqual(sorted(path.name for path in (self.folder / f"{name}-broken").iterdir()),
                         ["%02d.tar.repack"] + [f"0{i}.tar" for i in range(6)])
        lists = [(self.folder / f"{name}-{kind}/%02d.tar.repack").read_text() for kind in ("broken", "unbroken")]
        self.assertEqual(*lists)

    def test_an_output_that_was_removed_is_made_again(self):
        shards = self.data / "train-{000..002}.tar"
        self.repack(shards, "hole/%d.tar")
        before = {path: path.read_bytes() for path in self.outputs("hole/*.tar")}
        (self.folder / "hole/1.tar").unlink()
        self.assertIn("200 samples in 1 shards, 2 shards were finished", self.repack(shards, "hole/%d.tar"))
        self.assertEqual({path: path.read_bytes() for path in self.outputs("hole/*.tar")}, before)

    def test_damage_stops_the_run_behind_the_shards_before_it_or_is_kept_by_name(self):
        (self.folder / "damaged").mkdir()
        jpg = self.pictures[0]
        good = [(f"a/{i}.{field}", data) for i in range(40) for field, data in (("cls", b"1"), ("jpg", jpg))]
        write(self.folder / "damaged/0.tar", good)
        bad = dict(good) | {"a/7.jpg": jpg[:len(jpg) // 2], "a/9.jpg": b"\x89PNG\r\n", "a/11.jpg": b"",
                            "a/13.jpg": jpg[:-2]}
        write(self.folder / "damaged/1.tar", bad.items())
        write(self.folder / "damaged/2.tar", good)
        for _ in range(3):   # the error names the first shard, whichever completes first
            error = self.repack(self.folder / "damaged", "stopped/%d.tar", fails=True)
            self.assertRegex(error, r"(?s)the JPEG cannot be decoded: .*damaged/1\.tar.*key a/7,")
            self.assertEqual([path.name for path in self.outputs("stopped/*.tar")], ["0.tar"])
        line = run("repack", self.folder / "damaged", self.folder / "stopped/%d.tar", "--keep-damaged")
        self.assertEqual(line.returncode, 0, line.stderr)
        self.assertIn("80 samples in 2 shards, 1 shards were finished", line.stdout)
        self.assertIn("4 damaged and kept", line.stdout)
        self.assertEqual(re.findall(r"kept as it is: .*key (a/\d+)", line.stderr), ["a/7", "a/9", "a/11", "a/13"])
        after = dict(members(self.folder / "stopped/1.tar"))
        for name in ("a/7.jpg", "a/9.jpg", "a/11.jpg", "a/13.jpg"):
            self.assertEqual(after[name], bad[name])
        self.assertEqual(list(after), [name for name, _ in good])

    def test_a_damaged_shard_stops_the_run_behind_the_shards_before_it(self):
        (self.folder / "cut").mkdir()
        shutil.copy(self.shards[0], self.folder / "cut/0.tar")
        (self.folder / "cut/1.tar").write_bytes(self.shards[1].read_bytes()[:100_000])
        shutil.copy(self.shards[2], self.folder / "cut/2.tar")
        error = self.repack(self.folder / "cut", "from-cut/%d.tar", "--keep-damaged", fails=True)
        self.assertRegex(error, r"(?s)the shard .*1\.tar")
        self.assertEqual([path.name for path in (self.folder / "from-cut").iterdir() if "repack" not in path.name],
                         ["0.tar"])
        write(self.folder / "cut/1.tar", [("README", b"no sample")])
        error = self.repack(self.folder / "cut", "from-empty/%d.tar", fails=True)
        self.assertIn("the shard has no samples", error)

    def test_compressed_shards_and_what_is_in_no_sample(self):
        (self.folder / "odd").mkdir()
        jpg = self.pictures[0]
        plain = [("README", b"x"), ("d/.hidden.jpg", b"x"), ("d/k.Left.JPG", jpg), ("d/k.json", b"{ }\n"),
                 ("d/k.right.jpeg", jpg), ("d/k.png", b"not decoded"), ("e.", b""), ("e.txt", b"")]
        write(self.folder / "odd/plain.tar", plain[:6] + plain[7:])
        packed = gzip.compress((self.folder / "odd/plain.tar").read_bytes())
        (self.folder / "odd/other.tar.gz").write_bytes(packed)
        lines = self.repack(self.folder / "odd", "from-odd/%d.tar", "--first-number", 5).splitlines()
        self.assertEqual(sorted(lines[1:]), ["dot files passed over: 2", "names without a dot passed over: 2"])
        self.assertIn("4 images", lines[0])
        for number in (5, 6):
            fields = dict(members(self.folder / f"from-odd/{number}.tar"))
            self.assertEqual(sorted(fields), ["d/k.json", "d/k.left.jpg", "d/k.png", "d/k.right.jpeg", "e.txt"])
            unchanged = (fields["d/k.json"], fields["d/k.png"], fields["e.txt"])
            self.assertEqual(unchanged, (b"{ }\n", b"not decoded", b""))
            self.assertEqual(coding(fields["d/k.left.jpg"]), 0xc0)
        write(self.folder / "odd/plain.tar", plain)   # has a field without a name: cannot be written
        self.assertRegex(self.repack(self.folder / "odd/plain.tar", "refused/%d.tar", fails=True),
                         r"(?s)has no name.*plain\.tar")

    def test_pictures_can_be_made_smaller(self):
        line = self.repack(self.shards[0], "small/%d.tar", "--short-side", 90, "--max-side", 110, "--quality", 80)
        sizes = []
        for (name, old), (_, new) in zip(members(self.shards[0]), members(self.folder / "small/0.tar"), strict=True):
            if not is_picture(name):
                continue
            was, now = ([int.from_bytes(side, "big") for side in START_OF_FRAME.search(data).groups()]
                        for data in (old, new))
            self.assertTrue(now == was if min(was) <= 90 and max(was) <= 110 else min(now) == 90 or max(now) == 110)
            self.assertTrue(min(now) <= 90 and max(now) <= 110)
            sizes.append(now != was)
        self.assertIn(f"{sum(sizes)} resized", line)
        self.assertGreater(len(sizes) - sum(sizes), 0)
        self.assertGreater(sum(sizes), 100)

    def test_codes_are_shared_by_all_pictures_and_restarts_chosen_by_size(self):
        shards = self.data / "train-{000..002}.tar"
        plain = self.repack(shards, "plain-codes/%d.tar").splitlines()
        both = ("--codes", "--restarts-per-row", "auto")
        lines = self.repack(shards, "shared/%d.tar", *both, "--threads", 3).splitlines()
        self.assertEqual(len(plain), 1)
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], r"600 images, [\d.]+ MB to [\d.]+ MB \([-+][\d.]+ %\)")
        growth, read, without = map(float, re.fullmatch(
            r"restarts: every [\d.]+ MCUs on average, \+([\d.]+) % of the size; a mean random_resized_crop reads "
            r"(\d+) % of the MCUs, (\d+) % without restarts", lines[1]).groups())
        self.assertTrue(0 < growth < 2)
        self.assertTrue(40 < read < without < 95)
        self.assertIn("one pair for all images", lines[2])
        pictures = [data for path in self.outputs("shared/*.tar") for name, data in members(path) if is_picture(name)]
        first = max((huffman_tables(picture) for picture in pictures), key=len)
        self.assertEqual(sorted(first), [0x00, 0x01, 0x10, 0x11])
        for kind, table in first.items():
            self.assertEqual(len(table) - 16, 162 if kind >= 0x10 else 12)
            if kind < 0x10:
                self.assertEqual(sum(table[8:16]), 0)
        with_restarts = 0
        for picture in pictures:
            self.assertEqual(coding(picture), 0xc0)
            for kind, table in huffman_tables(picture).items():
                self.assertEqual(table, first[kind])
            with_restarts += restarts(picture) > 0
        self.assertGreater(with_restarts, len(pictures) / 2)
        self.repack(shards, "shared-alone/%d.tar", *both, "--threads", 1)
        self.assert_same_bytes(self.outputs("shared-alone/*.tar"), self.outputs("shared/*.tar"))
        self.assertIn("created with other options", self.repack(shards, "shared/%d.tar", fails=True))
        record = self.folder / "shared/%d.tar.repack"
        record.write_text(record.read_text().replace("\ncodes: 0", "\ncodes: 1"))
        self.assertIn("contains no codes", self.repack(shards, "shared/%d.tar", *both, fails=True))

    def test_the_programs_that_make_shards_write_restarts_too(self):
        done = run("make_shapes", self.folder / "shapes", "--samples", 20, "--shards", 1, "--restarts-per-row", "auto")
        self.assertEqual(done.returncode, 0, done.stderr)
        images = [data for name, data in members(self.folder / "shapes/train-000.tar") if is_picture(name)]
        self.assertGreater(sum(restarts(picture) > 0 for picture in images), 10)
        photos = self.folder / "photos/some"
        photos.mkdir(parents=True)
        for number, picture in enumerate(self.pictures[:20]):
            (photos / f"{number}.jpg").write_bytes(picture if number else picture[:len(picture) // 2])
        for option in ("auto", "1"):
            done = run("pack_folder", photos.parent, self.folder / f"packed-{option}/%d.tar",
                       "--restarts-per-row", option)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("1 of them unchanged, without restarts", done.stdout, done.stderr)
            self.assertIn("no restarts in", done.stderr)
        done = run("pack_folder", photos.parent, self.folder / "packed-plain/%d.tar")
        self.assertEqual(done.returncode, 0, done.stderr)
        plain, auto, rows = (members(self.folder / f"packed-{kind}/0.tar") for kind in ("plain", "auto", "1"))
        self.assertEqual([name for name, _ in plain], [name for name, _ in auto])
        self.repack(self.folder / "packed-plain/0.tar", "packed-repacked/%d.tar", "--restarts-per-row", "auto",
                    "--keep-damaged")
        self.assertEqual(members(self.folder / "packed-repacked/0.tar"), sorted_fields(auto))
        self.assertEqual(sum(before != after for before, after in zip(plain, auto)), 19)
        self.assertGreater(sum(restarts(data) > 3 for name, data in rows if is_picture(name)), 17)

    def test_restart_markers_when_asked_for(self):
        self.repack(self.shards[0], "restarts/%d.tar", "--restarts-per-row", 1)
        for name, data in members(self.folder / "restarts/0.tar"):
            if is_picture(name):
                self.assertGreater(restarts(data), 3)

    def test_mistakes_are_named(self):
        for arguments, words in ((("x.tar",), "expected the shards"), (("no-such.tar", "out/%d.tar"), "no-such.tar"),
                                 ((self.shards[0], "out.tar"), "exactly one number"),
                                 ((self.shards[0], "%d.tar", "--quality", "0"), "--quality"),
                                 ((self.shards[0], "%d.tar", "--threads", "0"), "--threads"),
                                 ((self.shards[0], "%d.tar", "--restarts-per-row", "some"), "--restarts-per-row"),
                                 ((self.shards[0], self.data / "train-%03d.tar"), "exists already")):
            done = run("repack", *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
        self.assertEqual(len(list(self.data.glob("*.repack"))), 0)


if __name__ == "__main__":
    unittest.main()
