# The resizer's exact pixels against Pillow's own decode, crop, resize and flip; skipped where there is no Pillow.
#
#   python3 tests/unit/image/pillow.py PROGRAM        # the program that tests/unit/image/pillow_cases.cpp becomes
#
# Pillow rounds between its two passes and decodes with whatever libjpeg it was built with, so one level may differ.
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
CASES = 300
MAX_LEVELS = 1


def expected(image_file, numbers):
    """What Pillow makes of a case, as bytes."""
    from PIL import Image
    left, top, width, height, columns, rows, flipped = numbers
    made = Image.open(image_file).convert("RGB").crop((left, top, left + width, top + height))
    made = made.resize((columns, rows), Image.BILINEAR)
    return (made.transpose(Image.FLIP_LEFT_RIGHT) if flipped else made).tobytes()


def main(program):
    try:
        import PIL
    except ImportError:
        print("skipped: this Python has no Pillow (Debian: python3-pil)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        lines = subprocess.run([program, folder, str(CASES)], check=True, capture_output=True, text=True).stdout
        worst = differing = samples = 0
        for number, line in enumerate(lines.splitlines()):
            numbers = [int(word) for word in line.split()]
            ours = pathlib.Path(folder, f"{number}.rgb").read_bytes()
            theirs = expected(pathlib.Path(folder, f"{number}.jpg"), numbers)
            if len(ours) != len(theirs):
                print(f"case {number}: {len(ours)} bytes, Pillow has {len(theirs)}")
                return 1
            gaps = [abs(a - b) for a, b in zip(ours, theirs)]
            worst = max(worst, max(gaps))
            differing += sum(gap > 0 for gap in gaps)
            samples += len(gaps)
    share = 100 * differing / samples
    print(f"Pillow {PIL.__version__}: {number + 1} pictures, {samples} samples, {share:.1f} % differ, "
          f"by {worst} at most")
    return 0 if worst <= MAX_LEVELS else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
