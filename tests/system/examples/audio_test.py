# The sounds of make_tones, read by the standard library, and the program that learns them.
#
#   python3 audio_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
import io
import pathlib
import re
import tarfile
import tempfile
import unittest
import wave

from programs import run


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


if __name__ == "__main__":
    unittest.main()
