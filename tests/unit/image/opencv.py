# Compares resize_filter::opencv_linear with cv2.resize(), and 16-bit RGB with cv2.imread(). Skipped without OpenCV.
#
#   python3 tests/unit/image/opencv.py PROGRAM        # the program that tests/unit/image/pillow_cases.cpp becomes
#
# OpenCV rounds weights to 11 bits and decodes with its own libjpeg, so one level may differ. 16-bit samples are equal.
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
CASES = 200
MAX_LEVELS = 1


def main(program):
    try:
        import cv2
        import numpy
    except ImportError:
        print("skipped: this Python has no OpenCV (pip install opencv-python-headless)")
        return SKIPPED
    worst = differing = samples = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        lines = subprocess.run([program, folder, str(CASES)], check=True, capture_output=True, text=True).stdout
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
    print(f"OpenCV {cv2.__version__}: {CASES} images, {samples} samples, {100 * differing / samples:.1f} % differ, by "
          f"{worst} at most; {wrong} of {CASES} 16-bit images differ")
    return 0 if worst <= MAX_LEVELS and wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
