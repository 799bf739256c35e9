# tf.data: TFRecord files, decode_and_crop_jpeg of the box alone, a bilinear resize without antialias (see README).
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf

import counted

FEATURES = {"jpg": tf.io.FixedLenFeature([], tf.string), "cls": tf.io.FixedLenFeature([], tf.int64)}


def prepare(s):
    mean, std = tf.constant(255 * counted.MEAN), tf.constant(255 * counted.STD)

    def prepared(serialized):
        sample = tf.io.parse_single_example(serialized, FEATURES)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(sample["jpg"]), tf.zeros([1, 0, 4], tf.float32), area_range=counted.SCALE,
            aspect_ratio_range=counted.RATIO, max_attempts=10, use_image_if_no_bounding_boxes=True)
        box = tf.stack([begin[0], begin[1], size[0], size[1]])
        pixels = tf.image.decode_and_crop_jpeg(sample["jpg"], box, channels=3)
        pixels = tf.image.resize(pixels, [counted.SIZE, counted.SIZE])
        pixels = tf.image.random_flip_left_right(pixels)
        if s.elements == "f16":
            pixels = tf.cast((pixels - mean) / std, tf.float16)
        else:
            pixels = tf.cast(pixels + 0.5, tf.uint8)
        return tf.ensure_shape(pixels, [counted.SIZE, counted.SIZE, 3]), sample["cls"]

    return prepared


def batches(s):
    files = sorted(str(path) for path in s.folder.glob("*.tfrecord"))
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = s.workers
    options.threading.max_intra_op_parallelism = 1
    data = (tf.data.TFRecordDataset(files, num_parallel_reads=1).repeat().shuffle(512)
            .map(prepare(s), num_parallel_calls=s.workers, deterministic=False)
            .batch(s.batch, drop_remainder=True).prefetch(2).with_options(options))
    yield from data.as_numpy_iterator()


s = counted.settings()
tf.config.threading.set_inter_op_parallelism_threads(s.workers)
tf.config.threading.set_intra_op_parallelism_threads(1)
counted.run(s, batches(s), {"tensorflow": tf.__version__})
