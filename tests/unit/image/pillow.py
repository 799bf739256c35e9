# The resizer's exact pixels against Pillow's own decode, crop, resize and flip; skipped without Pillow.
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
FILTERS = ("bilinear", "bicubic")


def expected(image_file, numbers, resize_filter):
    """Pillow's result of a case, as bytes."""
    from PIL import Image
    left, top, width, height, columns, rows, flipped = numbers
    image = Image.open(image_file).convert("RGB").crop((left, top, left + width, top + height))
    # Columns first, as Pillow does it. Since version 13 it would begin with the rows of tall images.
    which = getattr(Image, resize_filter.upper())
    image = image.resize((columns, height), which).resize((columns, rows), which)
    return (image.transpose(Image.FLIP_LEFT_RIGHT) if flipped else image).tobytes()


def main(program):
    try:
        import PIL
    except ImportError:
        print("skipped: this Python has no Pillow (Debian: python3-pil)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        lines = subprocess.run([program, folder, str(CASES)], check=True, capture_output=True, text=True).stdout
        cases = [[int(word) for word in line.split()] for line in lines.splitlines()]
        return max(compare(folder, cases, resize_filter, PIL.__version__) for resize_filter in FILTERS)


def compare(folder, cases, resize_filter, version):
    """Prints the difference of one filter from Pillow's; 0 if it is small enough."""
    worst = differing = samples = 0
    for number, numbers in enumerate(cases):
        ours = pathlib.Path(folder, f"{number}.{resize_filter}").read_bytes()
        theirs = expected(pathlib.Path(folder, f"{number}.jpg"), numbers, resize_filter)
        if len(ours) != len(theirs):
            print(f"case {number}: {len(ours)} bytes, Pillow has {len(theirs)}")
            return 1
        gaps = [abs(a - b) for a, b in zip(ours, theirs)]
        worst = max(worst, max(gaps))
        differing += sum(gap > 0 for gap in gaps)
        samples += len(gaps)
    share = 100 * differing / samples
    print(f"Pillow {version}, {resize_filter}: {len(cases)} images, {samples} samples, {share:.1f} % differ, "
          f"by {worst} at most")
    return 0 if worst <= MAX_LEVELS else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
