"""Trains a small network on shards of JPEGs with PyTorch; the flow is flow.cpp. `sh examples/python.sh` runs it.

    python3 examples/python/train_torch.py 'train-{000..146}.tar' 'val-{0..4}.tar' --classes 1000
    torchrun --nproc-per-node 2 examples/python/train_torch.py ...      # each rank receives its share of each batch

If it is killed, the same command continues after the last checkpoint, and ends with the same weights.
"""
import argparse
import os
import pathlib

import millrace
import torch
from torch import nn

arguments = argparse.ArgumentParser()
arguments.add_argument("train_shards")
arguments.add_argument("val_shards")
arguments.add_argument("--checkpoint", type=pathlib.Path, default="checkpoint.pt")
for name, default in {"classes": 10, "epochs": 10, "batch": 64, "size": 64, "save-every": 20}.items():
    arguments.add_argument(f"--{name}", type=int, default=default)
options = arguments.parse_args()
rank, ranks, cuda = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)), torch.cuda.is_available()
device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if cuda else "cpu"
if ranks > 1:
    torch.distributed.init_process_group("nccl" if cuda else "gloo")
photos = millrace.load(pathlib.Path(__file__).with_name("flow.cpp"))
train = photos.train(options.train_shards, batch=options.batch // ranks, size=options.size, seed=7)
val = photos.val(options.val_shards, batch=options.batch, size=options.size)
torch.manual_seed(1)
network = nn.Sequential(nn.Conv2d(3, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2),
                        nn.ReLU(), nn.AdaptiveMaxPool2d(3), nn.Flatten(), nn.Linear(576, options.classes)).to(device)
model = nn.parallel.DistributedDataParallel(network) if ranks > 1 else network
optimizer, first_epoch = torch.optim.Adam(network.parameters(), 0.002), 0
if options.checkpoint.exists():
    saved = torch.load(options.checkpoint, map_location=device)
    network.load_state_dict(saved["network"]), optimizer.load_state_dict(saved["optimizer"])
    train.load_state_dict(saved["train"])
    first_epoch = saved["train"]["epoch"]

for epoch in range(first_epoch, options.epochs):
    for step, (pixels, label) in enumerate(train):   # u8 [batch, size, size, 3]
        images = pixels.to(device).permute(0, 3, 1, 2).float() / 255 - 0.5
        loss = nn.functional.cross_entropy(model(images), label.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and (step + 1) % options.save_every == 0:   # a kill leaves the old checkpoint or the new one
            torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(),
                        "train": train.state_dict()}, f"{options.checkpoint}.new")
            os.replace(f"{options.checkpoint}.new", options.checkpoint)
    hits = torch.zeros(2, device=device)
    for pixels, label, valid, keys in val:   # each image once
        with torch.no_grad():
            right = network(pixels.to(device).permute(0, 3, 1, 2).float() / 255 - 0.5).argmax(1).cpu() == label
        hits += torch.tensor([(right & (valid > 0)).sum(), valid.sum()], device=device)
    if ranks > 1:
        torch.distributed.all_reduce(hits)
    if rank == 0:
        print(f"epoch {epoch}: accuracy {hits[0] / hits[1]:.3f}, {train.stats()['data_wait_share']:.1%} waiting")
