"""What `clip:` costs over regions of pictures: pairs a second on one core beside a bare script, and memory over chunks.

    python benchmarks/regions.py [FOLDER] [--regions 983] [--chunks 23] [--runs 3]

FOLDER holds a dual encoder of transformers; by default an untrained one with two small layers, which costs so little
that all else shows. Photographs are made up: of ten six have 500×375 pixels and four 1920×800. Each has one region,
which is drawn in the style of the Sherlock corpus, cut into two squares (`frame=widescreen`) and held against the text
of every region. The bare script does so with Pillow, transformers and torch: it draws, encodes 32 at a time, averages
and multiplies; it keeps nothing, checks nothing, and reads pictures that it is sure of. Each run is a process of its
own, on one core where the machine lets it choose; its seconds begin when torch and transformers are loaded, and end
when there are scores. Then so many chunks go through one process, whose largest memory is shown.
Needs `pip install 'askance[local]'`.
"""

# torch and transformers are installed where this script runs, not where it is type-checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw

BATCH = 32
WORDS = ("someone", "is", "late", "for", "a", "party", "the", "shop", "will", "close", "soon", "it", "rained", "today")
SIZES = ((500, 375), (500, 375), (1920, 800), (500, 375), (1920, 800)) * 2
MEMORY_PICTURES = 200
"""Pictures of the chunks whose memory is measured; their regions differ."""


def main() -> None:
    """Measure and print; `--part` is one of the processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--regions", type=int, default=983, help="regions of a chunk")
    parser.add_argument("--chunks", type=int, default=23)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part is not None:
        _one_core()
        print(json.dumps(PARTS[given.part](given)))
        return
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        folder = given.folder or make_encoder(place / "clip")
        write_pictures(place / "pictures", given.regions)
        asked = [str(folder), "--place", name, "--regions", str(given.regions), "--chunks", str(given.chunks)]
        print_speed(asked, pairs=given.regions**2, runs=given.runs)
        print_memory(part("memory", asked), pairs=given.regions**2)


def print_speed(asked: Sequence[str], *, pairs: int, runs: int) -> None:
    """One chunk, by each in turn."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ("askance", "bare script")}
    for turn in range(-1, runs):
        for name, kept in found.items():
            measured = part(name, asked)
            if turn >= 0:
                kept.append(measured)
    means = [one["mean"] for several in found.values() for one in several]
    if max(means) - min(means) > 1e-4:
        sys.exit("The two do not give the same scores.")
    base = statistics.median(one["seconds"] for one in found["bare script"])
    least = min(one["cpu"] for one in found["bare script"])
    print(f"One chunk, {pairs:,} pairs:\n")
    heads = (
        "seconds, median (least – most)",
        "ratio",
        "least CPU, seconds",
        "ratio",
        "pairs a second",
        "peak memory, MB",
    )
    print(f"| | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for name, each in found.items():
        seconds, cpu = [one["seconds"] for one in each], min(one["cpu"] for one in each)
        middle = statistics.median(seconds)
        spread = f"{middle:.2f} ({min(seconds):.2f} – {max(seconds):.2f})"
        peak = statistics.median(one["megabytes"] for one in each)
        ratios = f"{middle / base:.2f} | {cpu:.2f} | {cpu / least:.2f}"
        print(f"| {name} | {spread} | {ratios} | {pairs / middle:,.0f} | {peak:.0f} |")


def print_memory(measured: dict[str, tuple[float, float]], *, pairs: int) -> None:
    """Chunk after chunk, in one process."""
    print(f"\nChunks of {pairs:,} pairs in one process:\n\n| chunks | seconds | peak memory, MB |\n|---|---|---|")
    for chunks, (seconds, megabytes) in measured.items():
        print(f"| {chunks} | {seconds:.0f} | {megabytes:.0f} |")


def part(name: str, asked: Sequence[str]) -> Any:
    """What one process measures."""
    command = [sys.executable, __file__, "--part", name, *asked]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout)


def _one_core() -> None:
    """Keeps this process on one core, and says nothing on the way."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


# --- what is scored ---


def make_encoder(folder: Path) -> Path:
    """An untrained CLIP of two layers that sees 224 pixels."""
    torch, t, tokenizers = map(import_module, ("torch", "transformers", "tokenizers"))
    torch.manual_seed(0)
    words = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    special, letters = ["<unk>", "<pad>", "<s>", "</s>"], tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(special_tokens=special, initial_alphabet=letters, show_progress=False)
    words.train_from_iterator(WORDS, trainer)
    words.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    tokenizer = t.PreTrainedTokenizerFast(
        tokenizer_object=words, model_max_length=77,
        unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>",
    )  # fmt: skip
    small = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = {**small, "vocab_size": len(tokenizer), "max_position_embeddings": 77}
    text |= {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 1}
    eyes = {**small, "image_size": 224, "patch_size": 32}
    t.CLIPModel(t.CLIPConfig(text_config=text, vision_config=eyes, projection_dim=64)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    t.CLIPImageProcessorPil().save_pretrained(folder)
    return folder


def write_pictures(folder: Path, count: int) -> None:
    """Photographs of coloured clouds, all different."""
    folder.mkdir()
    draw = np.random.default_rng(0)
    for number in range(count):
        width, height = SIZES[number % len(SIZES)]
        coarse = Pillow.fromarray(draw.integers(0, 256, (height // 25, width // 25, 3), "uint8"))
        coarse.resize((width, height), Pillow.Resampling.BICUBIC).save(folder / f"{number:04}.jpg", quality=90)


def boxes_of(number: int) -> tuple[int, int, int, int]:
    """The region of a picture."""
    draw = random.Random(number)
    left, top = draw.randrange(300), draw.randrange(200)
    return left, top, left + draw.randrange(20, 190), top + draw.randrange(20, 170)


def text_of(number: int) -> str:
    """A text, different for each number."""
    return f"{' '.join(random.Random(number).choices(WORDS, k=9))} {number}"


# --- the processes ---


def askance(given: argparse.Namespace) -> dict[str, float]:
    """One chunk by `clip:`, its vectors kept in a fresh store."""
    _load()
    from askance.images import Image, RegionView
    from askance.models import Engine, get_scorer
    from askance.replay import open_records

    with tempfile.TemporaryDirectory(dir=given.place) as store:
        begun = time.perf_counter(), time.process_time()
        with open_records(store) as records:
            scorer = get_scorer(spec(given.folder), engine=Engine(records=records))
            shown = [
                (Image.from_path(file), RegionView("highlight", (boxes_of(number),), "native pixels"))
                for number, file in enumerate(files_in(given.place, given.regions))
            ]
            rows = asyncio.run(scorer.fresh_rows(shown, [text_of(number) for number in range(given.regions)]))
            scores = np.array(rows)
        return _measured(begun, scores)


def spec(folder: Path) -> str:
    """The scorer."""
    return f"clip:{folder}?frame=widescreen&draw=sherlock&device=cpu&batch={BATCH}"


def files_in(place: Path, count: int) -> list[Path]:
    """The first pictures."""
    return sorted((place / "pictures").iterdir())[:count]


def bare(given: argparse.Namespace) -> dict[str, float]:
    """The same by Pillow, transformers and torch alone."""
    torch, t = _load()
    begun = time.perf_counter(), time.process_time()
    model = t.AutoModel.from_pretrained(given.folder).eval()
    tokenizer = t.AutoTokenizer.from_pretrained(given.folder)
    pixels = t.AutoImageProcessor.from_pretrained(given.folder, backend="pil")
    files, seen, read = files_in(given.place, given.regions), [], []
    with torch.inference_mode():
        for start in range(0, given.regions, BATCH):
            places = range(start, min(start + BATCH, given.regions))
            squares = [square for number in places for square in _squares(files[number], boxes_of(number))]
            vectors = model.get_image_features(**pixels(images=squares, return_tensors="pt")).pooler_output
            seen.append((vectors[0::2] + vectors[1::2]) / 2)
            tokens = tokenizer([text_of(number) for number in places], padding=True, return_tensors="pt")
            read.append(model.get_text_features(**tokens).pooler_output)
        one, other = (torch.nn.functional.normalize(torch.cat(each), dim=1) for each in (seen, read))
        scores = (one @ other.T).numpy()
    return _measured(begun, scores)


def _squares(file: Path, box: tuple[int, int, int, int]) -> list[Pillow.Image]:
    picture = Pillow.open(file).convert("RGBA")
    layer = Pillow.new("RGBA", picture.size)
    ImageDraw.Draw(layer).rectangle(box, fill=(255, 5, 205, 60), outline=(5, 255, 55, 255), width=3)
    drawn = Pillow.alpha_composite(picture, layer).convert("RGB")
    (width, height), side = drawn.size, min(drawn.size)
    return [drawn.crop((0, 0, side, side)), drawn.crop((width - side, height - side, width, height))]


def memory(given: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """So many chunks by `clip:` in one process: after the first, the fifth and the last, seconds and megabytes."""
    _load()
    from askance.images import Image, RegionView
    from askance.models import Engine, get_scorer
    from askance.replay import open_records

    images = [Image.from_path(file) for file in files_in(given.place, MEMORY_PICTURES)]
    found: dict[str, tuple[float, float]] = {}
    start = time.perf_counter()

    async def score() -> None:
        for chunk in range(given.chunks):
            numbers = range(chunk * given.regions, (chunk + 1) * given.regions)
            shown = [
                (images[number % len(images)], RegionView("highlight", (boxes_of(number),), "native pixels"))
                for number in numbers
            ]
            np.array(await scorer.fresh_rows(shown, [text_of(number) for number in numbers]))
            if chunk + 1 in {1, 5, given.chunks}:
                found[str(chunk + 1)] = (time.perf_counter() - start, _megabytes())

    with tempfile.TemporaryDirectory(dir=given.place) as store, open_records(store) as records:
        scorer = get_scorer(spec(given.folder), engine=Engine(records=records))
        asyncio.run(score())
    return found


def _load() -> tuple[Any, Any]:
    torch, t = import_module("torch"), import_module("transformers")
    torch.set_num_threads(1)
    _ = t.AutoModel, t.AutoTokenizer, t.AutoImageProcessor, t.CLIPModel
    return torch, t


def _measured(begun: tuple[float, float], scores: Any) -> dict[str, float]:
    seconds, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
    return {"seconds": seconds, "cpu": cpu, "megabytes": _megabytes(), "mean": float(np.asarray(scores).mean())}


def _megabytes() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


PARTS = {"askance": askance, "bare script": bare, "memory": memory}


if __name__ == "__main__":
    main()
