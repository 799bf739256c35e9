# TurboLoader: decodes the crop, resizes and flips in its threads, one for each core; it delivers f32. Its shuffle has
# no parameter for a window: it shuffles all samples of the tar.
import importlib.metadata
import json

import numpy as np
import turboloader

import counted

s = counted.settings()


def batches():
    labels = np.array(json.loads((s.folder / "labels.json").read_text()))
    statistics = {"transform": turboloader.ImageNetNormalize()} if s.elements == "f16" else {}
    loader = turboloader.DataLoader(str(s.folder / "images.tar"), batch_size=s.batch, num_workers=s.workers,
                                    shuffle=True, image_size=counted.SIZE, output_format="pytorch", antialias=True,
                                    train_aug=True, drop_last=True, **statistics)
    epoch = 0
    while True:
        loader.set_epoch(epoch)
        epoch += 1
        for pixels, of_batch in loader:
            yield pixels, labels[np.asarray(of_batch["indices"])]


counted.run(s, batches(), {"TurboLoader": importlib.metadata.version("turboloader")}, delivers="f32")
