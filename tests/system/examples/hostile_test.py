# The example programs with hostile data: names do not control the terminal, the programs write only below the folders
# in their arguments, and huge declared sizes allocate no memory.
#
#   python3 hostile_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import zlib

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
LIMIT_MB = 300
KEYS = ["plain/1", "../../../way/out", "/tmp/millrace-absolute", "\x1b[2J\x1b]0;owned\x07", "line\nmillrace: ok",
        "c1\x9b2J", "turned\u202ewriting", "<script>alert(1)</script>", "back\\slash", "%s%n", "k" * 3000,
        "\udcff\udcfe raw"]


def run(name, *arguments, cwd=None):
    """(exit status, stdout and stderr as bytes, peak memory in MB)"""
    with subprocess.Popen([PROGRAMS / name, *map(os.fspath, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=cwd) as child:
        timer = threading.Timer(120, child.kill)
        timer.start()
        printed = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode, printed, used.ru_maxrss / 1024


def files_below(folder):
    return {os.path.join(at, name) for at, _, names in os.walk(folder) for name in names}


def write_shard(path, samples):
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape") as tar:
        for name, data in samples:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


class Hostile(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.data = self.folder / "data"
        self.data.mkdir()

    def tearDown(self):
        self.temporary.cleanup()

    def assert_safe(self, output):
        for at, byte in enumerate(output):
            if byte not in b"\n\t" and not 0x20 <= byte < 0x7f:
                self.fail(f"the byte {byte:#x} is printed after {output[max(0, at - 60):at]}")
        self.assertLess(len(output), 100_000)
        self.assertFalse([line for line in output.splitlines() if line.startswith(b"millrace: ok")])

    def test_inspect(self):
        write_shard(self.data / "a.tar", [(f"{key}.{field}", b"not a jpeg") for key in KEYS
                                          for field in ("jpg", "c\x1b[2Jls")])
        before = files_below(self.folder)
        status, output, _ = run("inspect", self.data / "a.tar")
        self.assertEqual(status, 1)
        self.assertIn(b"c\\x1b[2jls", output)
        self.assert_safe(output)
        self.assertEqual(files_below(self.folder), before)

        listed = self.folder / "q.jsonl"
        status, output, _ = run("inspect", "--quarantine", listed, self.data / "a.tar")
        self.assertEqual(status, 1)
        self.assert_safe(output)
        lines = listed.read_bytes().splitlines()
        self.assertEqual(len(lines), len(KEYS))
        self.assert_safe(b"".join(lines).decode("utf-8").replace("\ufffd", "?").encode("utf-8"))
        keys = set()
        for line in lines:
            entry = json.loads(line)
            keys.add(bytes.fromhex(entry["key_hex"]) if "key_hex" in entry else entry["key"].encode())
        self.assertEqual(keys, {key.encode("utf-8", "surrogateescape") for key in KEYS})
        self.assertEqual(files_below(self.folder), before | {str(listed)})

    def test_inspect_many_fields(self):
        write_shard(self.data / "a.tar", [(f"k{n // 1000}.f{n}{'x' * 150}", b"") for n in range(5000)])
        status, output, _ = run("inspect", self.data / "a.tar")
        self.assertEqual(status, 0)
        self.assertIn(b" and more (", output)
        self.assertIn(b" of 5 samples); ok", output)
        self.assert_safe(output)

    def test_inspect_huge_claims(self):
        member = tarfile.TarInfo("b.jpg")
        for size, limit in ((1 << 60, b"Raise max_member_bytes"), (1 << 30, b"beyond the end of the file")):
            member.size = size
            data = tarfile.TarInfo("a.cls").tobuf() + member.tobuf(tarfile.GNU_FORMAT) + b"x" * 4096
            for name, bytes_of in (("plain.tar", data), ("packed.tar", zlib_gzip(data))):
                (self.data / name).write_bytes(bytes_of)
                status, output, used = run("inspect", self.data / name)
                self.assertEqual(status, 1)
                if name == "plain.tar":
                    self.assertIn(limit, output)
                self.assertLess(used, LIMIT_MB)
                self.assert_safe(output)

    def test_repack(self):
        good = [key for key in KEYS if all(ord(c) >= 0x20 and c != "." for c in key.rpartition("/")[2])]
        write_shard(self.data / "good.tar", [(f"{key}.cls", b"1") for key in good])
        for number, key in enumerate(KEYS):
            if key not in good:
                write_shard(self.data / f"bad-{number}.tar", [(f"{key}.cls", b"1")])
        before = files_below(self.folder)
        status, output, _ = run("repack", self.data / "good.tar", "out/%03d.tar", cwd=self.folder)
        self.assertEqual(status, 0, output)
        self.assert_safe(output)
        with tarfile.open(self.folder / "out/000.tar", encoding="utf-8", errors="surrogateescape") as tar:
            self.assertEqual([m.name for m in tar], [f"{key}.cls" for key in good])
        new = {str(self.folder / "out" / name) for name in ("000.tar", "%03d.tar.repack")}
        self.assertEqual(files_below(self.folder), before | new)
        bad = sorted(self.data.glob("bad-*.tar"))
        self.assertEqual(len(bad), len(KEYS) - len(good))
        for shard in bad:
            status, output, _ = run("repack", shard, f"out/{shard.stem}-%d.tar", cwd=self.folder)
            self.assertEqual(status, 1, output)
            self.assertIn(b"has a control character", output)
            self.assert_safe(output)
        self.assertFalse(pathlib.Path("/tmp/millrace-absolute.cls").exists())

    def test_pack_folder(self):
        picture = self.make_picture()
        classes = [".hidden", "b\nc", "d\x1b[2J", "e\x9b", "f..", "h"]
        for name in classes:
            (self.data / name / "in\rside").mkdir(parents=True)
            (self.data / name / "in\rside" / "x\x07.y.jpg").write_bytes(picture)
            (self.data / name / "no\x1b[2Jjpeg.jpg").write_bytes(b"text")
        os.symlink("/etc", self.data / "h" / "link")
        os.mkfifo(self.data / "h" / "pipe.jpg")
        before = files_below(self.folder)
        status, output, _ = run("pack_folder", self.data, "out/%d.tar", cwd=self.folder)
        self.assertEqual(status, 0, output)
        self.assert_safe(output)
        new = {str(self.folder / "out" / name) for name in ("0.tar", "classes.txt")}
        self.assertEqual(files_below(self.folder), before | new)
        listed = (self.folder / "out/classes.txt").read_bytes().decode("utf-8").splitlines()
        self.assertEqual(len(listed), len(classes) - 1)
        self.assertTrue({"b_c", "d_[2J", "e_", "f..", "h"} == set(listed), listed)
        with tarfile.open(self.folder / "out/0.tar") as tar:
            for member in tar:
                self.assertFalse([c for c in member.name if ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0], member.name)
                self.assertNotIn("..", member.name)

        with open(self.data / "h" / "huge.jpg", "wb") as huge:
            huge.truncate((1 << 30) + 1)
        status, output, used = run("pack_folder", self.data, "again/%d.tar", cwd=self.folder)
        self.assertEqual(status, 1)
        self.assertIn(b"1073741825 bytes (expected: at most 1073741824)", output)
        self.assertIn(b"--max-file-bytes", output)
        self.assertLess(used, LIMIT_MB)
        self.assertEqual(list((self.folder / "again").glob("*.tar")), [])

    def test_make_shapes(self):
        status, output, _ = run("make_shapes", "out\x1b[2J", "--samples", "80", cwd=self.folder)
        self.assertEqual(status, 0, output)
        self.assert_safe(output)
        self.assertEqual({pathlib.Path(name).relative_to(self.folder).parts[0] for name in files_below(self.folder)},
                         {"out\x1b[2J"})

    def make_picture(self):
        status, output, _ = run("make_shapes", "shapes", "--samples", "80", cwd=self.folder)
        self.assertEqual(status, 0, output)
        shard = sorted((self.folder / "shapes").glob("train-*.tar"))[0]
        with tarfile.open(shard) as tar:
            return next(tar.extractfile(m).read() for m in tar if m.name.endswith(".jpg"))


def zlib_gzip(data):
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


if __name__ == "__main__":
    unittest.main()
