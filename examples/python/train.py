"""Trains a linear classifier on shards of JPEGs, with NumPy; the flow is flow.cpp.

    pip install ./include/python numpy          # or PYTHONPATH=include/python
    python3 examples/python/train.py 'train-{000..146}.tar' --classes 1000 --checkpoint run.npz

A second start with the same --checkpoint continues after the last saved batch. With `import torch` before the loader,
its batches are tensors of PyTorch.
"""
import argparse
import pathlib

import millrace
import numpy as np

arguments = argparse.ArgumentParser()
arguments.add_argument("shards")
arguments.add_argument("--classes", type=int, default=10)
arguments.add_argument("--epochs", type=int, default=2)
arguments.add_argument("--batch", type=int, default=64)
arguments.add_argument("--size", type=int, default=32)
arguments.add_argument("--save-every", type=int, default=100)
arguments.add_argument("--checkpoint", type=pathlib.Path, default="run.npz")
options = arguments.parse_args()

photos = millrace.load(pathlib.Path(__file__).with_name("flow.cpp"))
loader = photos.train(options.shards, batch=options.batch, size=options.size, seed=7)
weights = np.zeros((options.size * options.size * 3, options.classes), np.float32)
first_epoch = 0
if options.checkpoint.exists():
    saved = np.load(options.checkpoint)
    weights, first_epoch = saved["weights"], int(saved["epoch"])
    loader.load_state_dict({"millrace": str(saved["millrace"]), "epoch": first_epoch, "begun": bool(saved["begun"])})


def save():
    np.savez(options.checkpoint, weights=weights, **loader.state_dict())


for epoch in range(first_epoch, options.epochs):
    losses = []
    for number, (pixels, label) in enumerate(loader):
        x = pixels.reshape(len(pixels), -1).astype(np.float32) / 255 - 0.5
        scores = x @ weights
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        rows = np.arange(len(label))
        losses.append(-np.log(scores[rows, label] + 1e-9).mean())
        scores[rows, label] -= 1
        weights -= 0.01 * x.T @ scores / len(label)
        if number % options.save_every == options.save_every - 1:
            save()
    print(f"epoch {epoch}: loss {np.mean(losses):.4f}, {100 * loader.stats()['data_wait_share']:.1f} % waited for data")
    save()
