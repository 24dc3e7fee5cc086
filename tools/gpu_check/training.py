"""dtrun-train, compiled against this machine's torch, and its losses on the device compared with those on the CPU."""

import gzip
import random
import re
import struct
from pathlib import Path

from check import Failed, Skipped, cause

EPOCHS, CLASSES, SIDE = 2, 10, 28
TOLERANCE = 2e-3  # relative; losses are printed with four places


def write_images(folder, name, count, seed):
    """Images on a noisy background in the format of the MNIST database; the class is the bright row."""
    noise = random.Random(seed)
    pixels, labels = bytearray(), bytearray()
    for i in range(count):
        image = bytearray(value // 4 for value in noise.randbytes(SIDE * SIDE))
        row = i % CLASSES * 2
        image[row * SIDE:(row + 1) * SIDE] = b"\xff" * SIDE
        pixels += image
        labels.append(i % CLASSES)
    for kind, header, content in (("images-idx3", struct.pack(">4I", 0x803, count, SIDE, SIDE), pixels),
                                  ("labels-idx1", struct.pack(">2I", 0x801, count), labels)):
        with gzip.open(folder / f"{name}-{kind}-ubyte.gz", "wb", compresslevel=1) as file:
            file.write(header + content)


def start_compiling(check):
    """Starts the compiler in the background. Does nothing without torch or a compiler, or if it is already done."""
    if (check.out / "dtrun-train").exists() or not check.machine["torch"] or not check.machine["g++"]:
        return
    torch = Path(check.machine["torch"])
    include = torch / "include" if (torch / "include/torch").exists() else Path("/usr/include")  # Debian's
    library = torch / "lib" if (torch / "lib/libtorch_cpu.so").exists() else Path("/usr/lib/x86_64-linux-gnu")
    version = tuple(map(int, re.findall(r"\d+", check.machine["torch_version"])[:2]))
    source = check.pack / "source"
    libraries = [f"-l{name}" for name in ("torch", "torch_cpu", "torch_cuda", "c10", "c10_cuda") if (library / f"lib{name}.so").exists()]
    words = ["g++", f"-std={'c++20' if version >= (2, 9) else 'c++17'}", "-O1", "-w", "-DFMT_HEADER_ONLY", '-DDTRUN_VERSION="gpu-check"',
             f"-I{source}/dtrun-train", f"-I{source}/include", f"-I{check.prefix}/include", f"-isystem{include}",
             f"-isystem{include}/torch/csrc/api/include", source / "dtrun-train/main.cc", "-o", check.out / "dtrun-train.new",
             f"-L{library}", f"-Wl,-rpath,{library}", f"-Wl,-rpath,{check.prefix}/lib", check.prefix / "lib/libdtrun.so.1",
             "-Wl,--no-as-needed", *libraries, "-Wl,--allow-shlib-undefined", next((check.pack / "deps").glob("libz.so.1")), "-ldl",
             "-lpthread", *check.link_flags]
    check.compiling = check.runner.start("compile", ["nice", *words], check.environment(), check.out)


def finish_compiling(check):
    if not check.machine["torch"]:
        raise Skipped("no interpreter here has torch")
    if (check.out / "dtrun-train").exists() and check.compiling is None:
        return {"torch": check.machine["torch_version"]}  # from an earlier run
    if check.compiling is None:
        raise Skipped("there is no g++")
    check.last = check.compiling.finish(check.left())
    if check.last.code is None:
        raise Failed("the compiler was not done in time")
    if check.last.code != 0:
        errors = re.findall(r".*(?:error|undefined).*", check.last.err)
        raise Failed(errors[0][:300] if errors else cause(check.last))
    (check.out / "dtrun-train.new").replace(check.out / "dtrun-train")
    return {"torch": check.machine["torch_version"], "seconds": round(check.last.seconds, 1)}


def losses(check, model, device, sets):
    words = [check.out / "dtrun-train", "--model", model, "--epochs", str(EPOCHS), "--batch", "64", "--lr", "0.02", "--data", check.out / "data",
             "--device", device]
    done = check.job(f"train-{model}-{device.split(':')[0]}", 2, words, sets=sets)
    check.expect_code(done)
    found = [float(text) for text in re.findall(r"epoch \d+/\d+  loss ([\d.]+|nan)", done.out)]
    if len(found) != EPOCHS:
        raise Failed(f"{len(found)} losses, not {EPOCHS}: {cause(done)}")
    return found, done


def compare(check, model, sets):
    if not (check.out / "dtrun-train").exists():
        raise Skipped("dtrun-train did not compile")
    if not (check.out / "data").exists():
        (check.out / "data").mkdir()
        write_images(check.out / "data", "train", 2048, 1)
        write_images(check.out / "data", "t10k", 512, 2)
    on_cpu, _ = losses(check, model, "cpu", ["backend.name=gloo"])
    on_device, done = losses(check, model, "cuda:0", sets)
    facts = {"cpu": on_cpu, "device": on_device, "carrier": next(iter(re.findall(r"\((cuda:.*)\)", done.out)), "")}
    for cpu, device in zip(on_cpu, on_device):
        if not abs(cpu - device) <= TOLERANCE * cpu + 5e-4:
            raise Failed(f"losses {on_device} on the device, {on_cpu} on the CPU")
    return facts
