# The samples of audio files against readers that are not ours: wave of the standard library, and soundfile and soxr
# where Python has them.
#
#   python3 tests/unit/audio/audio_oracles.py PROGRAM [sndfile] [soxr]     # audio_cases, and its libraries
import array
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import wave

FRAMES = 3_000


def run(program, names, *options):
    """[(rate, frames, channels, f32 samples, i16 samples)] of the files."""
    lines = subprocess.run([program, *options, *names], check=True, capture_output=True, text=True).stdout
    rows = []
    for name, line in zip(names, lines.splitlines(), strict=True):
        floats, integers = array.array("f"), array.array("h")
        floats.frombytes(pathlib.Path(f"{name}.f32").read_bytes())
        integers.frombytes(pathlib.Path(f"{name}.i16").read_bytes())
        rows.append((*map(int, line.split()), floats, integers))
    return rows


def as_f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def check_wave(program, folder):
    """Files that wave writes and reads."""
    names = []
    for width in (1, 2, 3, 4):
        for channels in (1, 2, 5):
            names.append(folder / f"wave-{width}-{channels}.wav")
            with wave.open(str(names[-1]), "wb") as out:
                out.setparams((channels, width, 8_000 + channels, 0, "NONE", ""))
                out.writeframes(random.randbytes(FRAMES * channels * width))
    for name, (rate, frames, channels, floats, integers) in zip(names, run(program, names)):
        with wave.open(str(name)) as sound:
            width, data = sound.getsampwidth(), sound.readframes(FRAMES)
            assert (rate, frames, channels) == (sound.getframerate(), sound.getnframes(), sound.getnchannels()), name
        values = [int.from_bytes(data[at:at + width], "little", signed=width > 1) - (128 if width == 1 else 0)
                  for at in range(0, len(data), width)]
        scale = 1 << 8 * width - 1
        assert list(floats) == [as_f32(value / scale) for value in values], f"{name}: another sample"
        expected = [max(-32_768, min(32_767, round(sample * 32_768))) for sample in floats]
        assert list(integers) == expected, f"{name}: another integer"
    print(f"wave: {len(names)} files, all samples equal")


def check_soundfile(program, folder, with_sndfile):
    """Files that soundfile writes and reads."""
    try:
        import numpy
        import soundfile
    except ImportError:
        print("skipped: soundfile: this Python has no soundfile or no numpy")
        return
    noise = numpy.random.default_rng(5).uniform(-1, 1, (FRAMES, 2))
    forms = [(kind, coding) for kind in ("WAV", "WAVEX", "RF64") for coding in
             ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")]
    if with_sndfile:
        forms += [("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("AIFF", "PCM_16"), ("OGG", "VORBIS"), ("WAVEX", "ULAW")]
        forms += [("MP3", "MPEG_LAYER_III")] if "MP3" in soundfile.available_formats() else []
    names = []
    for kind, coding in forms:
        suffix = "wav" if kind in ("WAV", "WAVEX", "RF64") and coding != "ULAW" else "other"
        names.append(folder / f"{kind}-{coding}.{suffix}")
        soundfile.write(names[-1], noise, 22_050, coding, format=kind)
    for name, (rate, frames, channels, floats, _) in zip(names, run(program, names)):
        expected, expected_rate = soundfile.read(name, dtype="float32")
        assert (rate, frames, channels) == (expected_rate, *expected.shape), name
        gap = abs(numpy.array(floats).reshape(expected.shape) - expected).max()
        # Lossy codecs of other versions round differently.
        assert gap <= (1e-5 if "VORBIS" in name.name or "MPEG" in name.name else 0), f"{name}: {gap}"
    print(f"soundfile {soundfile.__version__}: {len(names)} files, all samples equal")


def check_soxr(program, folder):
    """Resampled files."""
    try:
        import numpy
        import soundfile
        import soxr
    except ImportError:
        print("skipped: soxr: this Python has no soxr, soundfile or numpy")
        return
    noise = numpy.random.default_rng(6).uniform(-0.5, 0.5, (20_000, 2)).astype("float32")
    for rate, to in ((44_100, 16_000), (8_000, 44_100), (16_000, 22_050)):
        name = folder / f"{rate}.wav"
        soundfile.write(name, noise, rate, "FLOAT")
        (_, frames, _, floats, _), = run(program, [name], "--rate", str(to))
        ours, expected = numpy.array(floats).reshape(frames, 2), soxr.resample(noise, rate, to, "HQ")
        assert 0 <= len(ours) - len(expected) <= 1, name
        gap = abs(ours[:len(expected)] - expected).max()
        assert gap <= 1e-5, f"{name}: {gap}"
    print(f"soxr {soxr.__version__}: 3 files")


def main(program, *features):
    random.seed(2026)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_wave(program, folder)
        check_soundfile(program, folder, "sndfile" in features)
        if "soxr" in features:
            check_soxr(program, folder)
        else:
            print("skipped: soxr: libsoxr is not installed")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
