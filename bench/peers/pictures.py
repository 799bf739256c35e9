# Times of Pillow and torchvision for the images of bench_pictures, which starts this; CPU us per image, one thread.
#
#   python3 -m venv build/peers && build/peers/bin/pip install pillow torch torchvision      # once; run.sh finds it
#   build/peers/bin/python3 bench/peers/pictures.py FOLDER [ROUNDS]      # FOLDER: rgb/*.png, labels/*.png, jpg/*.jpg
#
# Prints a line NAME<tab>MICROSECONDS for each result, and skipped<tab>WHY for each missing library. A result is the
# mean of each image's least time of all rounds; for recipes, whose draws differ, it is the least mean of a round.
import glob
import io
import sys
import time


def files(folder, kind):
    names = sorted(glob.glob(f"{folder}/{kind}/*"))
    return [open(name, "rb").read() for name in names]


def least(work, items, rounds):
    """us per item: the mean of each item's least time."""
    best = [1e9] * len(items)
    for _ in range(rounds):
        for i, item in enumerate(items):
            begin = time.thread_time()
            work(item)
            best[i] = min(best[i], time.thread_time() - begin)
    return 1e6 * sum(best) / len(best)


def least_mean(work, items, rounds):
    best = 1e9
    for _ in range(rounds):
        begin = time.thread_time()
        for item in items:
            work(item)
        best = min(best, (time.thread_time() - begin) / len(items))
    return 1e6 * best


def say(name, us):
    print(f"{name}\t{us:.1f}", flush=True)


def pillow(folder, rounds):
    try:
        import PIL
        from PIL import Image
    except ImportError as e:
        return print(f"skipped\tPillow: {e}")
    print(f"version\tPillow {PIL.__version__}")
    for kind in ("rgb", "labels"):
        say(f"{kind} Pillow", least(lambda f: Image.open(io.BytesIO(f)).load(), files(folder, kind), rounds))


def torchvision(folder, rounds):
    try:
        import torch
        import torchvision
        from torchvision import io as tio
        from torchvision.transforms import v2
        from PIL import Image
    except ImportError as e:
        return print(f"skipped\ttorchvision: {e}")
    torch.set_num_threads(1)
    print(f"version\ttorch {torch.__version__}, torchvision {torchvision.__version__}")

    def tensor(file):
        return torch.frombuffer(bytearray(file), dtype=torch.uint8)

    rgb, jpegs = [tensor(f) for f in files(folder, "rgb")], files(folder, "jpg")
    say("rgb torchvision", least(tio.decode_png, rgb, rounds))

    crop = v2.Resize((224, 224), antialias=True)
    tensors = [crop(tio.decode_jpeg(tensor(f), mode=tio.ImageReadMode.RGB)) for f in jpegs]
    images = [v2.functional.to_pil_image(t) for t in tensors]
    for name, operation in {
            "color_jitter": v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
            "color_jitter_without_hue": v2.ColorJitter(0.4, 0.4, 0.4),
            "rand_augment": v2.RandAugment(), "gaussian_blur_9": v2.GaussianBlur(9, (1.2, 1.2))}.items():
        say(f"{name} torchvision, tensors", least_mean(operation, tensors, rounds))
        say(f"{name} torchvision, Pillow's pictures", least_mean(operation, images, rounds))

    begins = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.RandAugment()]
    ends = [v2.ToDtype(torch.float16, scale=True), v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
    of_tensors = v2.Compose([*begins, *ends])
    of_images = v2.Compose([*begins, v2.PILToTensor(), *ends])
    mixup = v2.MixUp(alpha=0.8, num_classes=1000)

    def batch(samples):
        mixup(torch.stack(samples), torch.arange(len(samples)) % 1000)

    def by_tensors(_):
        batch([of_tensors(tio.decode_jpeg(tensor(f), mode=tio.ImageReadMode.RGB)) for f in jpegs])

    def by_images(_):
        batch([of_images(Image.open(io.BytesIO(f)).convert("RGB")) for f in jpegs])

    for name, work in {"tensors": by_tensors, "Pillow's pictures": by_images}.items():
        say(f"imagenet torchvision, {name}", least_mean(work, [None], rounds) / len(jpegs))


if __name__ == "__main__":
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    pillow(sys.argv[1], rounds)
    torchvision(sys.argv[1], rounds)
