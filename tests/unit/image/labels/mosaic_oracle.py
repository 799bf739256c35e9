# The labels of a mosaic by NumPy, for the frozen number of label_map_test.cpp.
#
#   python3 tests/unit/image/labels/mosaic_oracle.py       # prints the CRC-32 of the labels
import zlib

import numpy

WIDTH, HEIGHT = 64, 48   # the center is in the middle


def nearest(labels, width, height):
    """The label of the source pixel that contains each output's center."""
    rows = (2 * numpy.arange(height) + 1) * labels.shape[0] // (2 * height)
    columns = (2 * numpy.arange(width) + 1) * labels.shape[1] // (2 * width)
    return labels[rows][:, columns]


def mosaic():
    result = numpy.empty((HEIGHT, WIDTH), "<u2")
    middle_y, middle_x = HEIGHT // 2, WIDTH // 2
    for i in range(4):
        height, width = 15 + 13 * i, 20 + 11 * i
        labels = (numpy.arange(height * width).reshape(height, width) + 10_000 * i).astype("<u2")
        if i == 1:
            labels = labels[:, ::-1]
        if i == 2:
            labels = nearest(labels, 29, 17)   # resize(height, width) of the test
        is_right, is_below = i % 2 == 1, i >= 2
        quarter = result[middle_y:, :] if is_below else result[:middle_y, :]
        quarter = quarter[:, middle_x:] if is_right else quarter[:, :middle_x]
        quarter[:] = 60_000 + i
        height, width = min(labels.shape[0], middle_y), min(labels.shape[1], middle_x)
        rows = slice(0, height) if is_below else slice(labels.shape[0] - height, None)
        columns = slice(0, width) if is_right else slice(labels.shape[1] - width, None)
        to_rows = slice(0, height) if is_below else slice(middle_y - height, None)
        to_columns = slice(0, width) if is_right else slice(middle_x - width, None)
        quarter[to_rows, to_columns] = labels[rows, columns]
    return result


if __name__ == "__main__":
    print(zlib.crc32(mosaic().tobytes()))
