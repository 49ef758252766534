"""Planning the whole grid of the paper: 1,168 images, nothing on record.

    .venv/bin/python benchmarks/grid_plan.py [IMAGES]

A data set of the paper's size and shape is made up, its models are addresses that nobody asks, and the plan is timed
in a process of its own, beside the time that reading and hashing the images once takes.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

HARD = "large_combined_hard_QA_Combined_Action_Reason_train.json"
"""Name of a file of hard negatives in the folder."""
IMAGES = 1168
BYTES = 40_000


def lay_out(folder: Path, images: int) -> list[Path]:
    """A data set: each image with three true statements among fifteen options, and an annotation."""
    from io import BytesIO
    from random import Random

    from PIL import Image

    keys = [f"{number % 10}/{number}.jpg" for number in range(1, images + 1)]
    statements = {
        key: [
            [f"I should buy {key} because of reason {n}" for n in range(3)],
            [f"I should {'buy' if n < 3 else 'skip'} {key} because of reason {n}" for n in range(15)],
        ]
        for key in keys
    }
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "QA_Combined_Action_Reason_train.json").write_text(json.dumps(statements), encoding="utf-8")
    (folder / HARD).write_text(json.dumps(statements), encoding="utf-8")
    with (folder / "final_csv.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [(key, "1", f"bottle {key}", f"feather {key}", "[]") for key in keys[: -images // 5]]
        rows += [(key, "Regular_Object", "", "", "[]") for key in keys[-images // 5 :]]
        head = ("image_url", "category", "first_explaination", "second_explanation", "bounding_box")
        csv.writer(file).writerows([head, *rows])
    paths: list[Path] = []
    for key in keys:
        stream, path = BytesIO(), folder / "train_images" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (320, 240), (len(paths) % 256, 90, 90)).save(stream, "JPEG")
        path.write_bytes(stream.getvalue() + Random(key).randbytes(BYTES))  # what stands behind the picture is not read
        paths.append(path)
    return paths


def main(images: int) -> None:
    """Prints the plan, and how long it took."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        paths = lay_out(folder / "data", images)
        start = time.perf_counter()
        for path in paths:
            sha256(path.read_bytes()).hexdigest()
        once = time.perf_counter() - start
        models = ["LLaVA", "LLaVA-1.6", "InstructBLIP", "MiniGPT4", "BLIP2", "InternVL", "InternVL2", "InternLM"]
        models += ["Vicuna", "GPT-3.5", "GPT-4", "GPT-4V"]
        specs = {name: f"openai:{name}@http://127.0.0.1:9/v1" for name in models}
        specs |= {"GPT-4": "openai:gpt-4o", "GPT-4V": "openai:gpt-4o", "GPT-3.5": "openai:gpt-4o-mini"}  # with a price
        words = [word for name, spec in specs.items() for word in ("--model", f"{name}={spec}")]
        command = [sys.executable, "-m", "askance", "eval", "grid", "pittads", "--data", str(folder / "data"), "--plan"]
        start = time.perf_counter()
        done = subprocess.run([*command, *words], cwd=place, check=False, capture_output=True, text=True)
        print(done.stdout, done.stderr)
        print(f"{images:,} images: {time.perf_counter() - start:.1f} s; to read and hash them once: {once:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
