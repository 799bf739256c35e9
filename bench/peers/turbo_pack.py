# One tar of all JPEGs, because TurboLoader reads one local tar, and the labels in its order.
import json
import pathlib
import sys
import tarfile

shards, folder = map(pathlib.Path, sys.argv[1:])
labels, images = {}, []
with tarfile.open(folder / "images.tar", "w") as target:
    for path in sorted(shards.glob("*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                key, _, kind = member.name.rpartition(".")
                if kind == "cls":
                    labels[path.name, key] = int(tar.extractfile(member).read())
                elif kind == "jpg":
                    images.append((path.name, key))
                    member.name = f"{len(images):06}.jpg"
                    target.addfile(member, tar.extractfile(member))
(folder / "labels.json").write_text(json.dumps([labels[image] for image in images]))
