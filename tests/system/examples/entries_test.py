# Entry points that inspect builds for the JPEGs of shards.
#
#   python3 entries_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
import bz2
import io
import pathlib
import re
import tarfile
import tempfile
import unittest

from programs import run


class Entries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.shapes = cls.folder / "shapes"
        run("make_shapes", cls.shapes)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_shards_that_grow_a_lot_need_an_option(self):
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as out:
            member = tarfile.TarInfo("volume.raw")
            member.size = 80 << 20
            out.addfile(member, io.BytesIO(bytes(member.size)))
        shard = self.folder / "volume.tar.bz2"
        shard.write_bytes(bz2.compress(tar.getvalue()))
        self.assertIn("max_expansion", run("inspect", shard, fails=True, stream="stdout"))
        self.assertIn("1 samples, 83.9 MB", run("inspect", "--max-expansion", 1_000_000, shard))
        self.assertEqual(run("inspect", "--keys", "--max-expansion", 1_000_000, shard), "volume\n")
        run("inspect", "--quarantine", self.folder / "none.jsonl", "--max-expansion", 1_000_000, shard)
        self.assertIn("max_expansion", run("repack", shard, self.folder / "v-%d.tar", fails=True))
        run("repack", "--max-expansion", 1_000_000, shard, self.folder / "v-%d.tar")
        with tarfile.open(self.folder / "v-0.tar") as written:
            self.assertEqual([m.name for m in written], ["volume.raw"])

    def test_inspect_makes_entry_points_that_change_no_crop(self):
        folder = self.folder / "entries"
        folder.mkdir()
        for number in range(2):
            (folder / f"{number}.tar").write_bytes((self.shapes / f"train-00{number}.tar").read_bytes())
        pattern = r"^entry points: (\d) of 2 shards made now, (\d+) samples: (\d+) fields, \S+ MB \((\S+) % of the " \
               r"shards\), \S+ s\n$"
        first = re.match(pattern, run("inspect", "--entries", "--mcus", 2, "--threads", 3, folder))
        self.assertEqual(first[1], "2")
        self.assertLessEqual(float(first[4]), 3.6)
        self.assertEqual(len(list(folder.glob("*.millrace-index"))), 2)
        again = re.match(pattern, run("inspect", "--entries", folder))
        self.assertEqual(again.group(1, 2, 3), ("0", first[2], first[3]))
        lines = run("inspect", folder).splitlines()
        self.assertRegex(lines[2], rf"; entry points of {first[3]} fields, ")
        self.assertNotIn("entry points", run("inspect", self.shapes / "train-002.tar"))
        # Indexes of shards in read-only folders are stored elsewhere.
        apart = self.folder / "indexes"
        self.assertRegex(run("inspect", "--entries", "--indexes", apart, self.shapes / "train-002.tar"),
                         "1 of 1 shards")
        self.assertIn("entry points", run("inspect", "--indexes", apart, self.shapes / "train-002.tar"))
        self.assertIn("--mcus is 0", run("inspect", "--entries", "--mcus", 0, folder, fails=True))


if __name__ == "__main__":
    unittest.main()
