# Runs the example programs as the README describes, and checks their output and files.
#
#   python3 examples_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
import collections
import filecmp
import io
import json
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import zlib

from programs import PROGRAMS, run

PAGE_TEST = pathlib.Path(__file__).resolve().parents[2] / "unit/report/print/page_test.py"
SUMMARY = re.compile(r"summary: accuracy=(\d\.\d{3}) images_per_second=(\d+) data_wait_share=(\d\.\d{3})")


def samples_of(shards):
    """(key, jpg, label) of every sample, read by Python's tarfile."""
    for shard in sorted(shards):
        with tarfile.open(shard) as tar:
            fields = collections.defaultdict(dict)
            for member in tar:
                key, _, field = member.name.partition(".")
                fields[key][field] = tar.extractfile(member).read()
        for key, sample in fields.items():
            yield key, sample["jpg"], int(sample["cls"])


def png_pixels(file):
    """(width, height) and the bytes of all rows of an RGB PNG image without filters, read by Python's zlib."""
    chunks, at = {}, 8
    while at < len(file):
        length = int.from_bytes(file[at:at + 4], "big")
        name, data = file[at + 4:at + 8], file[at + 8:at + 8 + length]
        if zlib.crc32(name + data) != int.from_bytes(file[at + 8 + length:at + 12 + length], "big"):
            raise AssertionError(f"the chunk {name} has another checksum")
        chunks[name], at = data, at + 12 + length
    width, height = (int.from_bytes(chunks[b"IHDR"][i:i + 4], "big") for i in (0, 4))
    rows, stride = zlib.decompress(chunks[b"IDAT"]), 3 * width + 1
    if len(rows) != height * stride or any(rows[::stride]):
        raise AssertionError("the rows are of another size or filtered")
    return (width, height), b"".join(rows[i + 1:i + stride] for i in range(0, len(rows), stride))


class Trained:
    """Output and files of one run of train_images."""

    def __init__(self, *arguments):
        lines = run("train_images", *arguments).splitlines()
        numbers = SUMMARY.fullmatch(lines[-1])
        if not numbers:
            raise AssertionError(f"the last line is {lines[-1]!r}")
        self.accuracy, self.images_per_second, self.data_wait_share = map(float, numbers.groups())
        files = dict(line.split(": ", 1) for line in lines[:-1])
        self.rows = [json.loads(line) for line in pathlib.Path(files["log"]).read_text().splitlines()]
        self.events = pathlib.Path(files["TensorBoard"])
        self.model = pathlib.Path(files["model"].split(" (")[0])

    def series(self, name):
        return [(row["step"], row[name]) for row in self.rows if name in row]


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.shapes = cls.folder / "shapes"
        run("make_shapes", cls.shapes)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def train(self, *arguments):
        return Trained("--work", self.shapes, *arguments)

    def test_shapes_are_the_same_bytes_each_time(self):
        once, again = self.folder / "once", self.folder / "again"
        for folder in (once, again):
            run("make_shapes", folder, "--samples", 400)
        names = sorted(path.name for path in once.glob("*.tar"))
        self.assertEqual(len(names), 12)
        self.assertEqual(filecmp.cmpfiles(once, again, names, shallow=False), (names, [], []))

    def test_shapes_are_interleaved_and_of_many_kinds(self):
        samples = list(samples_of(self.shapes.glob("train-*.tar")))
        self.assertEqual(len(samples), 2400)
        for start in range(0, 2400, 10):
            self.assertEqual(sorted(label for _, _, label in samples[start:start + 10]), list(range(10)))
        # The frame header: height and width, then the sampling factors of the first component.
        frames = [re.search(rb"\xff[\xc0\xc2]..\x08(.{4})(?:\x03.(.)|\x01)", jpg, re.DOTALL) for _, jpg, _ in samples]
        self.assertEqual({frame[2] for frame in frames} - {None}, {b"\x11", b"\x21", b"\x22"})
        self.assertGreater(len({frame[1] for frame in frames}), 20)

    def test_training_reaches_its_accuracy(self):
        run_one = self.train()
        self.assertGreaterEqual(run_one.accuracy, 0.95)
        self.assertGreater(run_one.images_per_second, 0)
        self.assertLessEqual(run_one.data_wait_share, 1)
        accuracies = [value for _, value in run_one.series("validation_accuracy")]
        self.assertEqual(len(accuracies), 12)
        self.assertAlmostEqual(accuracies[-1], run_one.accuracy, places=3)
        losses = [value for _, value in run_one.series("loss")]
        self.assertLess(losses[-1], losses[0] / 3)
        self.assertEqual(run_one.series("loss")[-1][0], 1200)
        self.assertGreater(run_one.events.stat().st_size, 1000)
        self.assertGreater(run_one.model.stat().st_size, 1000)

    def test_own_data_needs_no_validation_set(self):
        self.assertGreater(self.train("--data", self.shapes / "train-00{0,1}.tar", "--epochs", 1).accuracy, 0)

    def test_rotated_labels_drop_it_to_chance(self):
        self.assertLess(self.train("--rotate-labels", "--epochs", 3).accuracy, 0.15)   # with correct labels: 0.78

    def test_the_recipe_mixes_rows_and_is_learnt(self):
        one, other = self.train("--recipe", "--epochs", 3), self.train("--recipe", "--epochs", 3, "--threads", 0)
        self.assertGreaterEqual(one.accuracy, 0.5)
        self.assertEqual(one.series("loss"), other.series("loss"))
        # No prediction for a mixture of two classes is certain.
        plain = self.train("--epochs", 3)
        self.assertGreater(one.series("loss")[-1][1], plain.series("loss")[-1][1])

    def test_micro_batches_add_up_to_the_same_training(self):
        one_part = self.train("--epochs", 1)
        parts = self.train("--epochs", 1, "--accumulate", 4)
        self.assertEqual([step for step, _ in one_part.series("loss")], [step for step, _ in parts.series("loss")])
        self.assertEqual(one_part.series("learning_rate"), parts.series("learning_rate"))
        # Sums in another order differ in their last bits, and those differences grow from step to step.
        for (_, one), (_, other), most in zip(one_part.series("loss"), parts.series("loss"), [1e-4, 1e-3, 1e-3]):
            self.assertAlmostEqual(one, other, delta=most)

    def stop(self, number, *arguments):
        """Sends train_images a signal after its first log line; returns its folder and output."""
        for _ in range(10):   # on a busy machine a run may end before the signal arrives
            before = set(self.shapes.glob("run-*"))
            process = subprocess.Popen([PROGRAMS / "train_images", "--work", self.shapes, *map(str, arguments)],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            folder = None
            while process.poll() is None and not (folder and (folder / "train.jsonl").exists() and
                                                  (folder / "train.jsonl").stat().st_size > 0):
                time.sleep(0.01)
                folder = next(iter(set(self.shapes.glob("run-*")) - before), None)
            process.send_signal(number)
            output, errors = process.communicate(timeout=900)
            if process.returncode != 0:
                break
        self.assertEqual(process.returncode, 128 + number, errors)
        return folder, output

    def test_ctrl_c_ends_the_step_saves_reports_and_goes_on_to_the_same_model(self):
        arguments = ("--epochs", 2, "--accumulate", 2)
        complete = self.train(*arguments)
        folder, output = self.stop(signal.SIGINT, *arguments, "--report")
        stopped = re.fullmatch(r"stopped: (\d+) updates; continue with the same arguments and --resume (.*)",
                               output.splitlines()[-1])
        self.assertIsNotNone(stopped, output)
        self.assertEqual(pathlib.Path(stopped[2]), folder)
        self.assertTrue(20 <= int(stopped[1]) < 200, stopped[1])
        self.assertIn("VERDICT", output)
        for name in ("last.bin", "report.html", "report.json"):
            self.assertGreater((folder / name).stat().st_size, 100)
        rows = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
        self.assertEqual(max(row["step"] for row in rows), int(stopped[1]))   # the log contains every update
        rest = self.train(*arguments, "--resume", folder)
        self.assertEqual(rest.model.parent, folder)
        self.assertEqual(rest.accuracy, complete.accuracy)
        self.assertEqual(rest.series("loss")[-1][0], 200)
        for file in ("best.bin", "last.bin"):
            self.assertTrue(filecmp.cmp(folder / file, complete.model.parent / file, shallow=False), file)
        self.assertIn("has all epochs", run("train_images", "--work", self.shapes, *arguments, "--resume", folder,
                                            fails=True))

    def test_a_batch_systems_signal_ends_it_as_well(self):
        folder, output = self.stop(signal.SIGTERM, "--epochs", 2)
        self.assertIn("stopped: ", output)
        self.assertGreater((folder / "last.bin").stat().st_size, 100)

    def test_workers_and_devices_do_not_change_the_training(self):
        reference = self.train("--epochs", 1)
        for arguments in (["--threads", 0], ["--threads", 4], ["--device", "host", "--pictures"]):
            other = self.train("--epochs", 1, *arguments)
            self.assertEqual(other.series("loss"), reference.series("loss"))
            self.assertEqual(other.accuracy, reference.accuracy)
        # The last run writes 24 images of 32 x 32 pixels, five per row. TensorBoard stores them as a JPEG.
        size, pixels = png_pixels((other.events.parent / "batch.png").read_bytes())
        self.assertEqual(size, (5 * 34 - 2, 5 * 34 - 2))
        self.assertGreater(len(set(pixels)), 200)
        events = other.events.read_bytes()
        self.assertLess(0, events.find(b"augmented"))
        self.assertLess(events.find(b"augmented"), events.find(b"\xff\xd8\xff"))
        self.assertNotEqual(self.train("--epochs", 1, "--seed", 2).series("loss"), reference.series("loss"))

    def test_reports_of_a_training_are_whole(self):
        printed = run("train_images", "--work", self.shapes, "--epochs", 1, "--report")
        page = pathlib.Path(re.search("^report: (.*)$", printed, re.MULTILINE)[1])
        checks = subprocess.run([sys.executable, PAGE_TEST, "--written", page.with_suffix(""), PROGRAMS / "page"],
                                capture_output=True, text=True, timeout=600)   # screenshots stay there
        self.assertEqual(checks.returncode, 0, checks.stdout + checks.stderr)
        pictures = json.loads(page.with_suffix(".json").read_text())["pictures"]
        self.assertGreater(pictures["jpegs"], 0)
        self.assertEqual(pictures["jpegs"], pictures["own_together"] + pictures["own_alone"] + pictures["libjpeg"])
        self.assertEqual(pictures["bytes_per_pixel"], pictures["bytes"] / pictures["pixels"])
        self.assertIn(f"{pictures['jpegs']:,} JPEGs: built-in decoder".replace(",", " "), printed)

    def test_the_kernels_train_as_the_host_does(self):
        if "found no nvcc" in run("train_images", "--device", "kernels", "--epochs", 0, fails=True):
            self.skipTest("no nvcc here: train_images has no kernels")
        data = ["--data", self.shapes / "train-000.tar", "--val", self.shapes / "val-000.tar", "--epochs", 1,
                "--work", self.folder / "kernels"]
        host, kernels = (Trained(*data, "--device", device) for device in ("host", "kernels"))
        self.assertEqual([step for step, _ in host.series("loss")], [step for step, _ in kernels.series("loss")])
        for name in ("loss", "validation_loss"):
            for (_, one), (_, other) in zip(host.series(name), kernels.series(name)):
                self.assertAlmostEqual(one, other, delta=1e-3)
        self.assertEqual(host.model.stat().st_size, kernels.model.stat().st_size)

    def test_mistakes_are_named(self):
        self.assertIn("--val needs --data", run("train_images", "--val", "x.tar", fails=True))
        self.assertIn("unknown argument '--epoch'", run("train_images", "--epoch", 3, fails=True))
        self.assertIn("no-such.tar", run("train_images", "--data", "no-such.tar", "--val", "no-such.tar", fails=True))

    def pairs(self, name, *arguments):
        """(accuracy, updates) of a run of train_pairs, and its folder."""
        work = self.folder / name
        printed = run("train_pairs", "--work", work, *arguments)
        summary = re.fullmatch(r"summary: accuracy=(\d\.\d{3}) best=\d\.\d{3} updates=(\d+)\n", printed)
        return (float(summary[1]), int(summary[2])) if summary else None, work

    def test_pairs_are_learnt_and_a_killed_run_ends_with_the_same_bytes(self):
        (accuracy, updates), work = self.pairs("pairs")
        self.assertGreaterEqual(accuracy, 0.95)
        self.assertEqual(updates, 400)
        rows = [json.loads(line) for line in (work / "train.jsonl").read_text().splitlines()]
        padding = [row["padding_share"] for row in rows if "padding_share" in row]
        self.assertTrue(all(0.1 < share < 0.7 for share in padding), padding)
        weights = [(work / name).read_bytes() for name in ("last.bin", "best.bin")]
        self.assertIsNone(self.pairs("pairs", "--stop-after", 137)[0])
        self.assertNotEqual((work / "last.bin").read_bytes(), weights[0])
        self.pairs("pairs", "--resume", "--threads", 3)
        self.assertEqual([(work / name).read_bytes() for name in ("last.bin", "best.bin")], weights)

    def test_pairs_with_the_words_of_another_picture_cannot_be_learnt(self):
        # The prediction is then a guess between two objects in the image.
        (accuracy, _), _ = self.pairs("rotated", "--rotate-queries")
        self.assertLess(accuracy, 0.65)
        self.assertGreater(accuracy, 0.3)

    def test_a_folder_of_pictures_can_be_packed_inspected_and_trained_on(self):
        photos = self.folder / "photos"
        names = {0: "ant", 1: "bee", 2: "cow"}
        originals = collections.defaultdict(set)
        for n, (_, jpg, label) in enumerate(samples_of(self.shapes.glob("train-*.tar"))):
            if label not in names:
                continue
            path = photos / names[label] / ("deep" if n % 2 else "") / f"a.{n}.jpeg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(jpg)
            originals[label].add(jpg)
        (photos / "bee" / "notes.txt").write_text("no image")
        (photos / "bee" / ".hidden.jpg").write_bytes(b"x")
        (photos / ".git").mkdir()

        pattern = self.folder / "packed" / "all-%03d.tar"
        printed = run("pack_folder", photos, pattern, "--max-samples", 100)
        self.assertIn("720 samples of 3 classes in 8 shards", printed)
        self.assertIn("1 files skipped", printed)
        shards = sorted(pattern.parent.glob("*.tar"))
        self.assertEqual(len(shards), 8)
        self.assertEqual((pattern.parent / "classes.txt").read_text(), "ant\nbee\ncow\n")
        packed = collections.defaultdict(set)
        for _, jpg, label in samples_of(shards):
            packed[label].add(jpg)
        self.assertEqual(packed, originals)
        first = [label for _, _, label in samples_of(shards[:1])]
        self.assertEqual(len(set(first)), 3)

        lines = run("inspect", pattern.parent / "all-{000..007}.tar").splitlines()
        self.assertEqual(len(lines), 9)
        self.assertRegex(lines[0], r"all-000.tar: 100 samples, .* MB, fields cls jpg; images \d+x\d+ .. .*; ok$")
        self.assertRegex(lines[8], r"^total: 8 shards, 720 samples, .*; 0 damaged$")

        Trained("--data", pattern.parent / "all-{000..005}.tar", "--val", pattern.parent / "all-{006..007}.tar",
                "--epochs", 1, "--work", self.folder / "own")

    def test_inspect_names_damage_and_goes_on(self):
        folder = self.folder / "damaged"
        folder.mkdir()
        shard_bytes = (self.shapes / "train-000.tar").read_bytes()
        (folder / "a.tar").write_bytes(shard_bytes[:len(shard_bytes) // 2 + 100])
        (folder / "b.tar").write_bytes(shard_bytes)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            member = tarfile.TarInfo("x.jpg")
            member.size = 4
            tar.addfile(member, io.BytesIO(b"jpeg"))
        (folder / "c.tar").write_bytes(buffer.getvalue())
        (folder / "d.tar").write_bytes(shard_bytes[:-1024])
        done = subprocess.run([PROGRAMS / "inspect", folder], capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 1)
        a, b, c, d, total = done.stdout.splitlines()
        self.assertRegex(a, r"a.tar: \d+ samples.*DAMAGED: .*a.tar")
        self.assertRegex(b, r"b.tar: 300 samples.*; ok$")
        self.assertRegex(c, r"c.tar: 1 samples.*1 bad; DAMAGED")
        self.assertRegex(d, r"d.tar: 300 samples.*; ok, but ended without a marker$")
        self.assertTrue(total.endswith("; 2 damaged"), total)

    def test_inspect_lists_damage_for_training_without_it(self):
        folder = self.folder / "hurt"
        folder.mkdir()
        broken = {(0, 10): lambda jpg: jpg[:len(jpg) // 2], (0, 200): lambda jpg: b"no image",
                  (1, 0): lambda jpg: b""}
        expected = set()
        for number in range(3):
            with tarfile.open(self.shapes / f"train-00{number}.tar") as shard, \
                 tarfile.open(folder / f"s-{number}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
                pictures = 0
                for member in shard:
                    data = shard.extractfile(member).read()
                    if member.name.endswith(".jpg"):
                        if hurt := broken.get((number, pictures)):
                            data = hurt(data)
                            member.size = len(data)
                            expected.add((f"s-{number}.tar", member.name.partition(".")[0]))
                        pictures += 1
                    tar.addfile(member, io.BytesIO(data))
        cut = folder / "s-2.tar"
        cut.write_bytes(cut.read_bytes()[:cut.stat().st_size // 2 + 100])

        listed = self.folder / "lists" / "q.jsonl"
        command = [PROGRAMS / "inspect", "--quarantine", listed, folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"3 of \d+ samples are damaged, and 1 of 3 shards end early: 4 new lines in")
        progress = r"inspect: 3 of 3 shards, \d+ samples, \d+ MB/s, 3 samples damaged, 1 shards cut"
        self.assertRegex(done.stderr, progress)
        self.assertEqual(len(done.stdout.splitlines()), 4)
        entries = [json.loads(line) for line in listed.read_text().splitlines()]
        self.assertEqual({(pathlib.Path(e["shard"]).name, e["key"]) for e in entries if e["key"]}, expected)
        self.assertEqual([pathlib.Path(e["shard"]).name for e in entries if not e["key"]], ["s-2.tar"])
        for entry in entries:
            self.assertEqual(set(entry), {"shard", "key", "offset", "stage", "reason"})
            self.assertTrue(entry["reason"])

        before = listed.read_bytes()
        done = subprocess.run([*command, "--threads", "1"], capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 new lines", done.stderr)
        self.assertEqual(listed.read_bytes(), before)
        self.assertEqual(run("inspect", "--quarantine", listed, self.shapes / "train-000.tar"), "")
        self.assertIn("q.txt", run("inspect", "--quarantine", self.folder / "q.txt", folder, fails=True))

    @unittest.skipUnless((PROGRAMS / "cuda_trainer").exists(), "no nvcc here: cuda_trainer is not built")
    def test_cuda_trainer(self):
        losses = r"before: loss (\d\.\d+), \d+\.\d+ s; after: loss (\d\.\d+), \d+\.\d+ s\n"
        done = subprocess.run([PROGRAMS / "cuda_trainer"], capture_output=True, text=True, timeout=900)
        if done.returncode == 77:
            self.assertRegex(done.stdout, r"^skipped: this machine has no GPU \(.+\)[^\n]*\n$")
        else:
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, losses)
        # Runs the kernels' bodies on the host. Both ways of loading must feed them the same batches.
        first, later = (re.fullmatch(losses, run("cuda_trainer", "--host", "--samples", 160, "--epochs", epochs))
                        for epochs in (1, 8))
        for match in (first, later):
            self.assertEqual(match[1], match[2])
        self.assertLess(float(later[1]), 0.9 * float(first[1]))

    def test_own_stage(self):
        self.assertEqual(run("own_stage"), "11 windows in 2 batches of [8, 8, 24, 32, 3]; mean level 53.0\n")

    def test_own_storage(self):
        printed = "300 samples in 10 batches; their labels sum to 44850\n"
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                self.assertEqual(run("own_storage", "--work", f"{folder}/vault"), printed)
            encrypted = (pathlib.Path(folder) / "vault" / "secret-0.tar").read_bytes()
            self.assertLess(encrypted.count(b"ustar"), 5)   # of 100 headers; the toy's key contains zero bytes

    def test_own_trainer(self):
        self.assertRegex(run("own_trainer"), r"^final loss before (\d\.\d+), after \1, difference 0\.0e\+00\n$")


if __name__ == "__main__":
    unittest.main()
