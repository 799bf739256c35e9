# Example programs that train: on sounds, on masks and several crops of one image, and on text.
#
#   python3 training_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
import io
import json
import pathlib
import re
import struct
import sys
import tarfile
import tempfile
import unittest
import wave

from programs import PROGRAMS, run

OUTCOME = re.compile(r"^\((.)\) .* waits for data +(\d+\.\d) % of the time, +\d+ tokens/s, loss (\d\.\d{3})$",
                     re.MULTILINE)


class Audio(unittest.TestCase):
    def test_it_learns_the_sounds(self):
        with tempfile.TemporaryDirectory() as folder:
            run("make_tones", folder)
            samples = 0
            for shard in pathlib.Path(folder).glob("*.tar"):
                with tarfile.open(shard) as tar:
                    for member in tar:
                        if member.name.endswith(".wav"):
                            with wave.open(io.BytesIO(tar.extractfile(member).read())) as sound:
                                self.assertEqual((sound.getframerate(), sound.getsampwidth()), (16_000, 2))
                                self.assertIn(sound.getnchannels(), (1, 2))
                                self.assertTrue(0.7 <= sound.getnframes() / 16_000 <= 1.3)
                                samples += 1
            self.assertEqual(samples, 800 + 200)
            accuracy = float(re.search(r"accuracy=([\d.]+)", run("train_audio", folder))[1])
            self.assertGreater(accuracy, 0.97)   # guessing has 0.2


def members_of(shard):
    with tarfile.open(shard) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


class Masks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        run("make_shapes", cls.folder / "work", "--masks")   # for both trainings

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def assert_mask_and_box(self, fields, name):
        frame = re.search(rb"\xff[\xc0\xc2]..\x08(.{4})", fields[name + ".jpg"], re.DOTALL)
        height, width = struct.unpack(">HH", frame[1])
        head, mask = fields[name + ".pgm"][:-width * height], fields[name + ".pgm"][-width * height:]
        self.assertEqual(head.split(), [b"P5", b"%d" % width, b"%d" % height, b"255"])
        description = json.loads(fields[name + ".json"])
        self.assertEqual(description["class"], int(fields[name + ".cls"]))
        value = bytes([description["class"] + 1])
        self.assertEqual(set(mask), {0, value[0]})
        rows = [mask[y * width:(y + 1) * width] for y in range(height)]
        hit = [y for y in range(height) if value in rows[y]]
        self.assertEqual(description["box"], [min(rows[y].index(value) for y in hit), hit[0],
                                        max(rows[y].rindex(value) for y in hit) + 1, hit[-1] + 1])

    def test_masks_come_beside_the_same_pictures(self):
        plain, masked = self.folder / "plain", self.folder / "masked"
        run("make_shapes", plain, "--samples", 80)
        run("make_shapes", masked, "--samples", 80, "--masks")
        shards = sorted(path.name for path in masked.glob("*.tar"))
        self.assertEqual(len(shards), 12)
        samples = 0
        for shard in shards:
            fields = members_of(masked / shard)
            shared = {name: data for name, data in fields.items() if name.endswith((".jpg", ".cls"))}
            self.assertEqual(list(members_of(plain / shard).items()), list(shared.items()))
            for name in fields:
                if name.endswith(".jpg"):
                    self.assert_mask_and_box(fields, name[:-4])
                    samples += 1
        self.assertEqual(samples, 112)

    def mean_iou(self, work, *arguments):
        printed = run("train_segmentation", "--work", work, "--epochs", 4, *arguments)
        return float(re.fullmatch(r"summary: mean_iou=(\d\.\d{3})", printed.splitlines()[-1])[1])

    def test_pixels_are_classified_and_not_by_the_masks_of_other_pictures(self):
        work = self.folder / "work"
        learnt = self.mean_iou(work)
        self.assertGreater(learnt, 0.4)
        rows = [json.loads(line) for line in (work / "train.jsonl").read_text().splitlines()]
        self.assertAlmostEqual(rows[-1]["mean_iou"], learnt, places=3)
        self.assertGreater((work / "batch.png").stat().st_size, 12 * 32 * 32 * 3)
        # All remaining pixels belong to the ground.
        self.assertLess(self.mean_iou(work, "--shift-masks"), 0.15)

    def test_features_that_are_learnt_without_labels_tell_classes_better(self):
        printed = run("train_views", "--work", self.folder / "work", "--epochs", 3)
        summary = re.fullmatch(r"summary: probe=(\d\.\d{3}) untrained=(\d\.\d{3})", printed.splitlines()[-1])
        learnt, untrained = float(summary[1]), float(summary[2])
        self.assertGreater(untrained, 0.15)   # chance is 0.1
        self.assertGreater(learnt, untrained + 0.07)


def write_text(path):
    words = [f"{word}, of the{' licence' * (i % 3)}" for i, word in enumerate(sorted(sys.stdlib_module_names))]
    text = " ".join(words).replace("_", " ")
    path.write_text("\n".join(text[i:i + 70].strip() for i in range(0, len(text), 70)))


@unittest.skipUnless((PROGRAMS / "train_text").exists(), "no SentencePiece here: the text examples are not built")
class Text(unittest.TestCase):
    def test_training_and_the_tool(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            text, work = folder / "a.txt", folder / "work"
            write_text(text)
            printed = run("train_text", "--work", work, "--vocabulary", 120, "--steps", 60, "--every", 4, folder)
            outcomes = OUTCOME.findall(printed)
            self.assertEqual([how for how, _, _ in outcomes], ["a", "b", "c"], printed)
            losses = [float(loss) for _, _, loss in outcomes]
            self.assertEqual(losses[0], losses[1])   # the place of tokenization does not matter
            self.assertLess(abs(losses[2] - losses[0]), 0.3)
            self.assertLess(max(losses), 4.3)        # a guess has ln 120 = 4.8
            self.assertGreater(float(outcomes[0][1]), 0)

            # The tool writes the tokens that training read, for each number of threads and files.
            cached = (work / "tokens-00000.u16").read_bytes()
            tokens = int(re.search(r"tokens=(\d+)", printed)[1])
            self.assertEqual(len(cached), 2 * tokens)
            for threads in (0, 3):
                run("tokenize_shards", "--model", work / "tokenizer.model", "--out", folder / f"{threads}-",
                    "--shard-tokens", 1000, "--threads", threads, text)
                files = sorted(folder.glob(f"{threads}-*.u16"))
                self.assertEqual(len(files), (tokens + 999) // 1000)
                self.assertEqual(b"".join(file.read_bytes() for file in files), cached)

    def test_mistakes_are_named(self):
        self.assertIn("expected --model FILE and texts", run("tokenize_shards", fails=True))
        self.assertIn("SentencePiece cannot use the model '/none'",
                      run("tokenize_shards", "--model", "/none", __file__, fails=True))


if __name__ == "__main__":
    unittest.main()
