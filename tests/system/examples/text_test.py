# Runs train_text and tokenize_shards as a user would, and checks their output and files.
#
#   python3 text_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
OUTCOME = re.compile(r"^\((.)\) .* waits for data +(\d+\.\d) % of the time, +\d+ tokens/s, loss (\d\.\d{3})$",
                     re.MULTILINE)


def run(name, *arguments, status=0):
    done = subprocess.run([PROGRAMS / name, *map(str, arguments)], capture_output=True, text=True, timeout=900,
                          stdin=subprocess.DEVNULL)
    if done.returncode != status:
        raise AssertionError(f"{name} {arguments}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stderr if status else done.stdout


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
        self.assertIn("expected --model FILE and texts", run("tokenize_shards", status=1))
        self.assertIn("SentencePiece cannot use the model '/none'",
                      run("tokenize_shards", "--model", "/none", __file__, status=1))


if __name__ == "__main__":
    unittest.main()
