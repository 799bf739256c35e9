# Images against other libraries; skipped without them.
#
#   python3 tests/unit/image/image_oracles.py PROGRAM resize                 # Pillow; PROGRAM is image_cases
#   python3 tests/unit/image/image_oracles.py PROGRAM opencv                 # OpenCV
#   python3 tests/unit/image/image_oracles.py PROGRAM colors [COUNT [SEED]]  # Pillow
#
# resize: the resizer's exact pixels are those of Pillow's own decode, crop, resize and flip; patches are those of
# Pillow's image, resized to the size that Qwen2-VL's smart_resize() computes. Pillow rounds between its two passes and
# decodes with whatever libjpeg it was built with, so one level may differ.
#
# opencv: resize_filter::opencv_linear is cv2.resize(), and 16-bit RGB is that of cv2.imread(). OpenCV rounds weights to
# 11 bits and decodes with its own libjpeg, so one level may differ. 16-bit samples are equal.
#
# colors: photometric operations are Pillow's own, bit for bit: first those whose digests slow_operations.hpp has, then
# COUNT random ones. Pillow's wheels for x86-64 do not fuse products and sums; those for other processors may.
import math
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
NO_PILLOW = "skipped: this Python has no Pillow (Debian: python3-pil)"
PILLOW_CASES, OPENCV_CASES = 300, 200
MAX_LEVELS = 1
FILTERS = ("bilinear", "bicubic")
PATCH, MAX_PATCHES = 7, 48
KINDS = ("brightness contrast saturation sharpness hue grayscale invert posterize solarize solarize_add autocontrast "
         "equalize pillow_blur torchvision_blur rotate shear_x shear_y translate erase").split()


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


def check_resize(program):
    try:
        import PIL
    except ImportError:
        print(NO_PILLOW)
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        lines = subprocess.run([program, folder, str(PILLOW_CASES)], check=True, capture_output=True, text=True).stdout
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


def check_opencv(program):
    try:
        import cv2
        import numpy
    except ImportError:
        print("skipped: this Python has no OpenCV (pip install opencv-python-headless)")
        return SKIPPED
    worst = differing = samples = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        lines = subprocess.run([program, folder, str(OPENCV_CASES)], check=True, capture_output=True, text=True).stdout
        for number, line in enumerate(lines.splitlines()):
            left, top, width, height, columns, rows, flipped = map(int, line.split())
            path = pathlib.Path(folder, str(number))

            def expected(ending, resized):
                image = cv2.imread(str(path) + ending, cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH)
                image = image[top:top + height, left:left + width, ::-1]
                if resized:
                    image = cv2.resize(numpy.ascontiguousarray(image), (columns, rows), interpolation=cv2.INTER_LINEAR)
                return image[:, ::-1] if flipped else image

            theirs = expected(".jpg", True)
            ours = numpy.fromfile(str(path) + ".opencv_linear", numpy.uint8).reshape(theirs.shape)
            gaps = numpy.abs(ours.astype(int) - theirs)
            worst = max(worst, int(gaps.max()))
            differing += int((gaps > 0).sum())
            samples += gaps.size
            deep = expected(".png", False)
            wrong += not numpy.array_equal(numpy.fromfile(str(path) + ".u16", numpy.uint16).reshape(deep.shape), deep)
    share = 100 * differing / samples
    print(f"OpenCV {cv2.__version__}: {OPENCV_CASES} images, {samples} samples, {share:.1f} % differ, by "
          f"{worst} at most; {wrong} of {OPENCV_CASES} 16-bit images differ")
    return 0 if worst <= MAX_LEVELS and wrong == 0 else 1


def made_by_pillow(image, kind, value, second, numbers, filter_of_warp, fill):
    """Pillow's result of an operation; None if it has none of that kind."""
    from PIL import Image, ImageEnhance, ImageFilter, ImageOps
    enhancers = {"brightness": ImageEnhance.Brightness, "contrast": ImageEnhance.Contrast,
                 "saturation": ImageEnhance.Color, "sharpness": ImageEnhance.Sharpness}
    maps = {"shear_x": (1, value, 0, 0, 1, 0), "shear_y": (1, 0, 0, value, 1, 0),
            "translate": (1, 0, -value, 0, 1, -second)}
    resample = (Image.NEAREST, Image.BILINEAR, Image.BICUBIC)[filter_of_warp]
    if kind in enhancers:
        return enhancers[kind](image).enhance(value)
    if kind in maps:
        return image.transform(image.size, Image.AFFINE, maps[kind], resample, fillcolor=fill)
    if kind == "hue":   # as torchvision turns the hue of Pillow's images
        h, s, v = image.convert("HSV").split()
        shift = int(value * 255)
        return Image.merge("HSV", (h.point([(i + shift) % 256 for i in range(256)]), s, v)).convert("RGB")
    if kind == "erase":
        left, top, width, height = numbers
        changed = image.copy()
        changed.paste(fill, (left, top, left + width, top + height))
        return changed
    return {
        "grayscale": lambda: image.convert("L").convert("RGB"),
        "invert": lambda: ImageOps.invert(image),
        "posterize": lambda: ImageOps.posterize(image, numbers[0]) if numbers[0] else Image.new("RGB", image.size),
        "solarize": lambda: ImageOps.solarize(image, value),
        "solarize_add": lambda: image.point([min(255, i + numbers[0]) if i < 128 else i for i in range(256)] * 3),
        "autocontrast": lambda: ImageOps.autocontrast(image),
        "equalize": lambda: ImageOps.equalize(image),
        "pillow_blur": lambda: image.filter(ImageFilter.GaussianBlur(value)),
        "rotate": lambda: image.rotate(value, resample, fillcolor=fill),
        "torchvision_blur": lambda: None,
    }[kind]()


def cases_of(output):
    """(words of the line, pixels before, pixels after) of each case."""
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        words = output[at:end].decode().split()
        size = int(words[-2]) * int(words[-1]) * 3
        yield words, output[end + 1:end + 1 + size], output[end + 1 + size:end + 1 + 2 * size]
        at = end + 1 + 2 * size


def check_colors(program, count="3000", seed="1"):
    try:
        import PIL
        from PIL import Image
    except ImportError:
        print(NO_PILLOW)
        return SKIPPED
    compared, wrong = dict.fromkeys(KINDS, 0), []
    for arguments in (["frozen"], ["colors", count, seed]):
        output = subprocess.run([program, *arguments], check=True, capture_output=True).stdout
        for words, before, after in cases_of(output):
            kind, value, second = KINDS[int(words[0])], float.fromhex(words[1]), float.fromhex(words[2])
            *numbers, filter_of_warp, red, green, blue, width, height = map(int, words[3:])
            image = Image.frombytes("RGB", (width, height), before)
            result = made_by_pillow(image, kind, value, second, numbers, filter_of_warp, (red, green, blue))
            if result is None:
                continue
            compared[kind] += 1
            if result.tobytes() != after:
                differ = sum(a != b for a, b in zip(result.tobytes(), after))
                wrong.append(f"{kind} {' '.join(words[1:])}: {differ} of {len(after)} bytes differ")
    for line in wrong[:20]:
        print(line)
    print(f"Pillow {PIL.__version__}: " + ", ".join(f"{kind} {n}" for kind, n in compared.items() if n) +
          f"; {len(wrong)} differ")
    return 1 if wrong or min(n for kind, n in compared.items() if kind != "torchvision_blur") == 0 else 0


def main(program, part, *options):
    return {"resize": check_resize, "opencv": check_opencv, "colors": check_colors}[part](program, *options)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
