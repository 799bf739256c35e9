# Compares the resizer's exact pixels with Pillow's own decode, crop, resize and flip. Compares patches with patches of
# Pillow's image, resized to the size that Qwen2-VL's smart_resize() computes. Skipped without Pillow.
#
#   python3 tests/unit/image/pillow.py PROGRAM        # the program that tests/unit/image/pillow_cases.cpp becomes
#
# Pillow rounds between its two passes and decodes with whatever libjpeg it was built with, so one level may differ.
import math
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
CASES = 300
MAX_LEVELS = 1
FILTERS = ("bilinear", "bicubic")
PATCH, MAX_PATCHES = 7, 48


def expected(image_file, numbers, resize_filter):
    """Pillow's result of a case, as bytes."""
    from PIL import Image
    left, top, width, height, columns, rows, flipped = numbers
    image = Image.open(image_file).convert("RGB").crop((left, top, left + width, top + height))
    # Columns first, as Pillow does it. Since version 13 it would begin with the rows of tall images.
    which = getattr(Image, resize_filter.upper())
    image = image.resize((columns, height), which).resize((columns, rows), which)
    return (image.transpose(Image.FLIP_LEFT_RIGHT) if flipped else image).tobytes()


def smart_size(side, height, width):
    """The height and width that smart_resize() computes for patches of this side."""
    rows, columns = max(1, round(height / side)), max(1, round(width / side))
    if rows * columns > MAX_PATCHES:
        scale = math.sqrt(height * width / (MAX_PATCHES * side * side))
        rows, columns = max(1, math.floor(height / scale / side)), max(1, math.floor(width / scale / side))
    return min(rows, MAX_PATCHES) * side, min(columns, MAX_PATCHES // min(rows, MAX_PATCHES)) * side


def expected_patches(image_file, numbers, _):
    """Pillow's patches of the entire image, as bytes."""
    from PIL import Image
    image = Image.open(image_file).convert("RGB")
    height, width = smart_size(PATCH, image.height, image.width)
    image = image.resize((width, image.height), Image.BILINEAR).resize((width, height), Image.BILINEAR)
    return b"".join(image.crop((left, top, left + PATCH, top + PATCH)).tobytes()
                    for top in range(0, height, PATCH) for left in range(0, width, PATCH))


def main(program):
    try:
        import PIL
    except ImportError:
        print("skipped: this Python has no Pillow (Debian: python3-pil)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        lines = subprocess.run([program, folder, str(CASES)], check=True, capture_output=True, text=True).stdout
        cases = [[int(word) for word in line.split()] for line in lines.splitlines()]
        return max(compare(folder, cases, kind, PIL.__version__) for kind in (*FILTERS, "patches"))


def compare(folder, cases, resize_filter, version):
    """Prints the difference of one filter from Pillow's; 0 if it is small enough."""
    worst = differing = samples = 0
    for number, numbers in enumerate(cases):
        ours = pathlib.Path(folder, f"{number}.{resize_filter}").read_bytes()
        oracle = expected_patches if resize_filter == "patches" else expected
        theirs = oracle(pathlib.Path(folder, f"{number}.jpg"), numbers, resize_filter)
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
