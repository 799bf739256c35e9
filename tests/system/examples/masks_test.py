# Masks, and the example programs that train on them or on several crops of one image.
#
#   python3 masks_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
import json
import pathlib
import re
import struct
import tarfile
import tempfile
import unittest

from programs import run


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


if __name__ == "__main__":
    unittest.main()
