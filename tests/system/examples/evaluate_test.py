# Runs examples/evaluate with several numbers of ranks: each run prints the same accuracy and predicts each sample once.
#
#   python3 evaluate_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
#
# Skipped if mpirun is missing.
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(command, **environment):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=900,
                          stdin=subprocess.DEVNULL, env=os.environ | AS_ROOT | environment)


@unittest.skipUnless(shutil.which("mpirun"), "mpirun is missing: install openmpi-bin")
class Evaluation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.data = cls.folder / "data"
        for command in (["make_shapes", cls.data, "--samples", 480, "--shards", 8],
                        ["train_images", "--work", cls.folder, "--data", cls.data / "train-{000..007}.tar", "--val",
                         cls.data / "val-{000..003}.tar", "--epochs", 10, "--device", "host"]):
            done = run([PROGRAMS / command[0], *command[1:]])
            if done.returncode != 0:
                raise AssertionError(f"{command}\n{done.stdout}\n{done.stderr}")
        (cls.model,) = cls.folder.glob("run-1/best.bin")

    def evaluate(self, ranks, *arguments):
        name = self.folder / f"by-{ranks}"
        launcher = ["mpirun", "--oversubscribe", "-n", ranks] if ranks > 1 else []
        done = run([*launcher, PROGRAMS / "evaluate", "--model", self.model, "--data",
                    self.data / "val-{000..003}.tar", "--predictions", name, *arguments],
                   TMPDIR=str(self.folder), OMPI_MCA_btl_vader_backing_directory=str(self.folder))
        self.assertEqual(done.returncode, 0, f"{ranks} ranks: {done.stdout}\n{done.stderr}")
        lines = [(self.folder / f"by-{ranks}-{rank}.txt").read_text().splitlines() for rank in range(ranks)]
        return re.findall(r"accuracy: .*", done.stdout), lines

    def test_the_accuracy_is_that_of_one_rank_and_each_sample_is_predicted_once(self):
        (printed,), (all_lines,) = self.evaluate(1)
        correct = sum(label == predicted for _, label, predicted in map(str.split, all_lines))
        self.assertEqual(len(all_lines), 192)
        self.assertEqual(printed, f"accuracy: {correct / 192:.4f} of 192 samples")
        self.assertGreater(correct, 50)   # ten classes: guessing reaches about 19
        self.assertEqual(sorted(line.split()[0] for line in all_lines), sorted(f"val/{i}" for i in range(192)))
        # 192 samples fill the last batch, leave fewer rows than ranks, or are fewer than one batch of all ranks.
        for ranks in (2, 3, 4, 6):
            for batch in (5, 16, 64, 191):
                with self.subTest(ranks=ranks, batch=batch):
                    (again,), lines = self.evaluate(ranks, "--batch", batch)
                    self.assertEqual(again, printed)
                    self.assertEqual(sorted(sum(lines, [])), sorted(all_lines))


if __name__ == "__main__":
    unittest.main(verbosity=2)
