# The compared loaders: packages, input formats, and notes for their rows.
import dataclasses


@dataclasses.dataclass
class Contender:
    name: str
    program: str                 # in this folder; for Millrace: the options of bench_peers
    reads: str = "tar"
    environment: str = ""        # folder of the virtual environment; none: bench_peers
    installs: tuple = ()         # arguments of pip install, one call after the other
    needs: str = ""              # Debian packages without which it does not install or run
    pack: str = ""               # the program that packs the photographs for it; for Millrace: options of `repack`
    note: str = ""               # a remark for the reader of the results
    compiles: bool = False       # the program compiles its flow if it is called with the argument "compile"

    @property
    def is_ours(self):
        return self.name.startswith("Millrace")


REPACK = "--restarts-per-row auto --codes"
TORCH = ("torch", "torchvision", "webdataset", "pillow", "numpy")

CONTENDERS = [
    Contender("Millrace", "shards"),
    Contender("Millrace in Python", "door.py", environment="torch", installs=(TORCH,), compiles=True),
    Contender("Millrace, by an index", "indexed"),
    Contender("Millrace, entries in the index", "entries"),
    Contender("Millrace, repacked", "shards", pack=REPACK),
    Contender("Millrace, repacked, by an index", "indexed", pack=REPACK),
    Contender("tf.data", "tf_data.py", "TFRecord", "tf-data", (["tensorflow-cpu"],), pack="tf_pack.py",
              note="resize without antialias"),
    Contender("mlx-data", "mlx_data.py", "tar", "mlx-data", (["mlx-data", "numpy"],),
              note="f16 by a table in numpy: it has no operator for it"),
    Contender("FFCV", "ffcv_loader.py", ".beton", "ffcv",
              (["torch", "torchvision", "pillow", "numpy", "setuptools", "wheel"],
               ["--no-build-isolation", "ffcv", "opencv-python-headless"]),
              needs="libopencv-dev libturbojpeg0-dev pkg-config g++", pack="ffcv_pack.py",
              note="the same JPEG bytes in its container"),
    Contender("DALI on CPU", "dali.py", "tar", "dali", (["nvidia-dali-cuda130", "numpy"],),
              note="resize without antialias"),
    Contender("torchvision", "torchvision_v2.py", "tar", "torch", (TORCH,)),
    Contender("Pillow", "pillow.py", "tar", "torch", (TORCH,), note="the usual recipe"),
    Contender("SPDL", "spdl_io.py", "tar", "spdl", (["spdl", "spdl-io", "numpy"],), needs="ffmpeg",
              note="FFmpeg decodes and scales"),
    Contender("TurboLoader", "turbo_loader.py", "tar", "turboloader", (["turboloader", "numpy"],),
              pack="turbo_pack.py", note="delivers f32; a thread for each core"),
]
