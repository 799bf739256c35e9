# Packs the samples of tar shards as TFRecord files of tf.train.Example, one for each shard: FROM TO.
import os
import pathlib
import sys
import tarfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf

shards, to = map(pathlib.Path, sys.argv[1:])
for path in sorted(shards.glob("*.tar")):
    with tarfile.open(path) as tar, tf.io.TFRecordWriter(str(to / f"{path.stem}.tfrecord")) as out:
        files = {member.name: tar.extractfile(member).read() for member in tar}
        for name in sorted(name for name in files if name.endswith(".jpg")):
            label = int(files[name[:-4] + ".cls"])
            out.write(tf.train.Example(features=tf.train.Features(feature={
                "jpg": tf.train.Feature(bytes_list=tf.train.BytesList(value=[files[name]])),
                "cls": tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))})).SerializeToString())
