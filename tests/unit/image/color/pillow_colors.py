# Photometric operations against Pillow's own, bit for bit; skipped without Pillow.
#
#   python3 tests/unit/image/color/pillow_colors.py PROGRAM [COUNT [SEED]]   # the compiled pillow_colors.cpp
#
# First the operations whose digests frozen_colors.hpp has, then COUNT random ones. Pillow's wheels for x86-64 do
# not fuse products and sums; those for other processors may.
import subprocess
import sys

SKIPPED = 77
KINDS = ("brightness contrast saturation sharpness hue grayscale invert posterize solarize solarize_add autocontrast "
         "equalize pillow_blur torchvision_blur rotate shear_x shear_y translate erase").split()


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


def main(program, count="3000", seed="1"):
    try:
        import PIL
        from PIL import Image
    except ImportError:
        print("skipped: this Python has no Pillow (Debian: python3-pil)")
        return SKIPPED
    compared, wrong = dict.fromkeys(KINDS, 0), []
    for arguments in (["frozen"], [count, seed]):
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


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
