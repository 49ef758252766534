"""`clip:` against transformers driven directly, on tiny untrained encoders."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from askance.errors import BadImage, ConfigError, ModelError, OutOfMemory, ReplayMiss, StoreError, UsageError
from askance.images import Image, RegionView
from askance.images.pixels import MEAN_COLOUR, pad_to_square
from askance.models import Engine, RecordedScorer, best_texts, get_embedder, get_scorer, nearest_texts
from askance.models.encoders.dual import DualEncoder
from askance.models.encoders.towers import Towers, parts_of
from askance.models.encoders.vectors import cosine_of, half
from askance.replay import MemoryStore, open_records
from tests.models.encoders.conftest import Folders
from tests.models.encoders.test_sentence import spoil
from tests.scripted import PICTURES

torch: Any = pytest.importorskip("torch", reason="torch is not installed; tests/slow/test_hf.py runs this where it is")
t: Any = pytest.importorskip("transformers")
pytestmark = pytest.mark.slow(group="local")

IMAGES = [Image.load(PICTURES / name) for name in ("brick-cup.jpg", "coin-horse.jpg")]
TEXTS = ["a cup made of bricks", "a horse on a coin", "tea"]
LONG = "A cup made of bricks. A horse on a coin! Drink tea and sleep well tonight, in a bottle covered with feathers."
FAMILIES = ["clip", "siglip", "siglip2"]
CLOSE = 2e-3
"""Vectors are rounded to 16 bits before they are compared."""


def towers(folder: Path) -> tuple[Any, Any, Any]:
    pixels = t.AutoImageProcessor.from_pretrained(folder, backend="pil")
    return t.AutoModel.from_pretrained(folder).eval(), t.AutoTokenizer.from_pretrained(folder), pixels


def reference(folder: Path, pictures: Sequence[Any], texts: Sequence[str]) -> Any:
    """What the model itself gives for all pairs, in one call: pictures × texts."""
    model, tokenizer, pixels = towers(folder)
    fixed = {"padding": "max_length", "max_length": 16} if "siglip" in folder.name else {"padding": True}
    tokens = tokenizer(list(texts), return_tensors="pt", **fixed)
    with torch.inference_mode():
        return model(**tokens, **pixels(images=list(pictures), return_tensors="pt"))


def scorer_of(folder: Path, settings: str = "", *, records: Any = None, mode: Any = "auto") -> RecordedScorer:
    return get_scorer(
        f"clip:{folder}{settings}", engine=Engine(records=MemoryStore() if records is None else records, mode=mode)
    )


@pytest.mark.parametrize("family", FAMILIES)
async def test_scores_are_those_of_the_model_itself(duals: Folders, family: str) -> None:
    folder = duals(family)
    came = reference(folder, [image.open() for image in IMAGES], TEXTS)
    cosines = (came.image_embeds @ came.text_embeds.T).tolist()
    logits = came.logits_per_image

    for settings, expected in {
        "": cosines,
        "?batch=1": cosines,
        "?scale=logits": logits.tolist(),
        **({"?scale=sigmoid": torch.sigmoid(logits).tolist()} if family != "clip" else {}),
    }.items():
        scorer = scorer_of(folder, settings)
        scores = [await scorer.score(image, TEXTS) for image in IMAGES]
        # A model's own scale is e^2.5 here.
        assert scores == [
            pytest.approx(row, abs=CLOSE if settings != "?scale=logits" else 13 * CLOSE) for row in expected
        ]


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many pictures and texts went through weights."""
    counts: Counter[str] = Counter()
    vectors = Towers._vectors  # pyright: ignore[reportPrivateUsage]

    def counted(self: Towers, what: str, inputs: Any) -> Any:
        found = vectors(self, what, inputs)
        counts[what] += len(found)
        return found

    monkeypatch.setattr(Towers, "_vectors", counted)
    return counts


async def test_each_picture_and_text_is_encoded_once_and_found_by_the_next_process(
    duals: Folders, tmp_path: Path, encoded: Counter[str]
) -> None:
    with open_records(tmp_path) as store:
        first = scorer_of(duals("clip"), records=store)
        one = [await first.score(image, TEXTS) for image in IMAGES]
        assert encoded == {"pictures": 2, "texts": 3}
        # Another scale is another score, made of the same vectors; and so is a vector of a text.
        second = scorer_of(duals("clip"), "?scale=logits&batch=2", records=store)
        two = [await second.score(image, TEXTS) for image in IMAGES]
        assert encoded == {"pictures": 2, "texts": 3}
        assert two == [[pytest.approx(score * two[0][0] / one[0][0]) for score in row] for row in one]
    assert len(list((tmp_path / "vectors").glob("*.rows"))) == 1


async def test_scores_do_not_depend_on_whether_vectors_were_kept(duals: Folders, tmp_path: Path) -> None:
    with open_records(tmp_path) as store:
        kept = scorer_of(duals("siglip"), records=store)
        await kept.score(IMAGES[0], TEXTS[:1])
        again = await kept.score(IMAGES[0], [TEXTS[1], TEXTS[0]])

    assert again == await scorer_of(duals("siglip")).score(IMAGES[0], [TEXTS[1], TEXTS[0]])


async def test_a_replay_loads_nothing_and_knows_the_picture_by_its_digest(
    duals: Folders, encoded: Counter[str]
) -> None:
    records = MemoryStore()
    live = scorer_of(duals("clip"), records=records)
    scores = await live.score(IMAGES[0], TEXTS)
    known = Image.from_digest(IMAGES[0].sha256)

    replayed = scorer_of(duals("clip"), records=records, mode="replay")
    named = get_scorer(f"clip:{live.id.model}", engine=Engine(records=records, mode="replay"))

    assert await replayed.score(known, TEXTS) == await named.score(known, TEXTS) == scores
    assert encoded == {"pictures": 1, "texts": 3}
    with pytest.raises(ReplayMiss):
        await replayed.score(known, ["else"])
    asked = get_scorer(f"clip:{live.id.model}", engine=Engine(records=MemoryStore()))
    with pytest.raises(UsageError, match=r"by the digest of its weights alone\. Name its folder: `clip:FOLDER`\.$"):
        await asked.score(IMAGES[0], TEXTS)


@pytest.mark.parametrize("frame", ["", "?frame=padded"])
async def test_the_cosine_of_picture_and_text_is_the_score(duals: Folders, encoded: Counter[str], frame: str) -> None:
    records, folder = MemoryStore(), duals("siglip")
    embedder = get_embedder(f"clip:{folder}{frame}", engine=Engine(records=records))
    scores = await scorer_of(folder, frame).score(IMAGES[0], TEXTS)

    picture, texts = await embedder.embed_image(IMAGES[0]), await embedder.embed(TEXTS)

    assert [cosine_of(half(picture), half(text)) for text in texts] == scores
    assert ("frame" in embedder.form()) == bool(frame)  # where nothing is said of it, keys stay as they were
    encoded.clear()
    replayed = get_embedder(embedder.form(), engine=Engine(records=records, mode="replay"))
    assert await replayed.embed_image(Image.from_digest(IMAGES[0].sha256)) == picture
    assert not encoded


async def test_long_texts_are_read_in_parts(duals: Folders) -> None:
    folder = duals("clip")
    _, tokenizer, _ = towers(folder)
    parts = parts_of(LONG, lambda text: len(tokenizer(text)["input_ids"]) <= 16)
    came = reference(folder, [IMAGES[0].open()], parts)
    mean = torch.nn.functional.normalize(came.text_embeds.mean(dim=0), dim=0)

    (pooled,) = await scorer_of(folder).score(IMAGES[0], [LONG])
    (best,) = await scorer_of(folder, "?long=max").score(IMAGES[0], [LONG])
    (vector,) = await get_embedder(f"clip:{folder}", engine=Engine(records=MemoryStore())).embed([LONG])

    assert len(parts) > 2
    assert pooled == pytest.approx(float(came.image_embeds[0] @ mean), abs=CLOSE)
    assert best == pytest.approx(float((came.image_embeds[0] @ came.text_embeds.T).max()), abs=CLOSE)
    assert vector == pytest.approx(mean.tolist(), abs=CLOSE)
    with pytest.raises(UsageError, match=r"^The text that begins 'A cup made of bricks\.[^']*' is longer than 'clip:"):
        await scorer_of(folder, "?long=refuse").score(IMAGES[0], [LONG])


async def test_what_a_view_shows_is_what_is_scored(duals: Folders) -> None:
    folder, image, boxes = duals("clip"), IMAGES[0], ((20.0, 30.0, 120.0, 140.0),)
    scorer = scorer_of(folder)
    shown = {show: RegionView(show, boxes) for show in ("highlight", "crop", "both")}
    came = reference(folder, [shown["highlight"].render(image)[0], shown["crop"].render(image)[0]], TEXTS)
    both = torch.nn.functional.normalize(came.image_embeds.mean(dim=0), dim=0)
    rows = dict(zip(("highlight", "crop"), came.image_embeds, strict=True)) | {"both": both}

    for show, view in shown.items():
        expected = (rows[show] @ came.text_embeds.T).tolist()
        assert await scorer.score(image, TEXTS, view=view) == pytest.approx(expected, abs=CLOSE)
    assert len({scorer.keys(image, TEXTS[:1], view=view) for view in (*shown.values(), RegionView())}) == 4
    with pytest.raises(UsageError, match="lies outside the picture"):
        await scorer.score(image, TEXTS, view=RegionView("crop", ((9000, 0, 9001, 1),)))


async def test_padded_pictures_are_seen_whole(duals: Folders) -> None:
    folder, image = duals("clip"), IMAGES[0]
    came = reference(folder, [pad_to_square(image.open(), MEAN_COLOUR)], TEXTS)
    scorer = scorer_of(folder, "?frame=padded")

    assert await scorer.score(image, TEXTS) == pytest.approx(
        (came.image_embeds @ came.text_embeds.T)[0].tolist(), abs=CLOSE
    )
    assert scorer.keys(image, TEXTS) != scorer_of(folder).keys(image, TEXTS)


@pytest.mark.parametrize("size", [(200, 90), (90, 200), (120, 100), (100, 100)])
async def test_of_two_squares_the_vectors_are_averaged_as_they_come(
    duals: Folders, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    folder, photo = duals("clip"), IMAGES[0].open().resize(size)
    view = RegionView("highlight", ((30, 20, 80, 90),), style="sherlock")
    image = Image.from_pil(photo)
    # The reference: drawn, cut in two, and averaged before the length is 1.
    model, _, pixels = towers(folder)
    (drawn,), (width, height), side = view.render(image), size, min(size)
    cuts = [drawn.crop((0, 0, side, side)), drawn.crop((width - side, height - side, width, height))]
    with torch.inference_mode():
        raw = model.get_image_features(**pixels(images=cuts, return_tensors="pt")).pooler_output
    expected = torch.nn.functional.normalize(raw.mean(dim=0), dim=0)

    exact: list[Any] = []

    def rounding(vector: Any) -> Any:
        exact.append(vector)
        return half(vector)

    monkeypatch.setattr("askance.models.encoders.towers.half", rounding)
    await scorer_of(folder, "?frame=widescreen&draw=sherlock").score(
        image, TEXTS[:1], view=RegionView("highlight", view.boxes)
    )

    (vector,) = (torch.as_tensor(each) for each in exact[1:])  # the first is the text's
    assert torch.nn.functional.normalize(vector, dim=0).tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    lengths = raw.norm(dim=1)
    assert size == (100, 100) or abs(lengths[0] - lengths[1]) > 1e-3  # or it made no difference when they have it


async def test_each_frame_is_what_its_pictures_give(duals: Folders) -> None:
    folder, image = duals("clip"), IMAGES[1]
    photo = Image.from_pil(image.open().resize((150, 60)))
    texts, keys = reference(folder, [image.open()], TEXTS).text_embeds, set[tuple[str, ...]]()

    middle = photo.open().resize((80, 32), Pillow.Resampling.BICUBIC).crop((24, 0, 56, 32))
    padded = Pillow.new("RGBA", (150, 150))
    padded.paste(photo.open(), (0, 45))
    resized = padded.resize((32, 32), Pillow.Resampling.BICUBIC).convert("RGB")
    for frame, shown in {"crop": middle, "resize": resized}.items():
        scorer = scorer_of(folder, f"?frame={frame}")
        came = reference(folder, [shown], TEXTS)
        expected = (came.image_embeds @ texts.T)[0].tolist()
        assert await scorer.score(photo, TEXTS) == pytest.approx(expected, abs=CLOSE)
        keys.add(scorer.keys(photo, TEXTS))
    assert len(keys) == 2


async def test_the_style_of_views_is_the_scorers_where_it_has_one(duals: Folders) -> None:
    folder, image, boxes = duals("clip"), IMAGES[0], ((20, 30, 120, 140),)
    ours, theirs = (RegionView("highlight", boxes, style=style) for style in ("askance", "sherlock"))
    own, set_to = scorer_of(folder), scorer_of(folder, "?draw=sherlock")

    assert await own.score(image, TEXTS, view=ours) != await own.score(image, TEXTS, view=theirs)
    assert await set_to.score(image, TEXTS, view=ours) == await own.score(image, TEXTS, view=theirs)
    back = scorer_of(folder, "?draw=askance")
    assert await back.score(image, TEXTS, view=theirs) == await own.score(image, TEXTS, view=ours)


async def test_a_prefix_stands_in_front_of_each_text_and_of_each_part_of_a_long_one(duals: Folders) -> None:
    folder, image, prefix = duals("clip"), IMAGES[0], "inference: "
    plain, prefixed = scorer_of(folder), scorer_of(folder, f"?prefix={prefix}")

    assert await prefixed.score(image, TEXTS) == await plain.score(image, [prefix + text for text in TEXTS])
    assert prefixed.keys(image, TEXTS) != plain.keys(image, TEXTS)
    _, tokenizer, _ = towers(folder)
    parts = parts_of(LONG, lambda text: len(tokenizer(prefix + text)["input_ids"]) <= 16)
    best = max(await plain.score(image, [prefix + part for part in parts]))
    assert len(parts) > 2
    assert await scorer_of(folder, f"?long=max&prefix={prefix}").score(image, [LONG]) == [best]
    with pytest.raises(UsageError, match=r"^The text that begins 'A cup made of bricks\."):
        await scorer_of(folder, f"?long=refuse&prefix={prefix}").score(image, [LONG])
    (vector,) = await get_embedder(f"clip:{folder}?prefix={prefix}", engine=Engine(records=MemoryStore())).embed(
        ["tea"]
    )
    (same,) = await get_embedder(f"clip:{folder}", engine=Engine(records=MemoryStore())).embed([f"{prefix}tea"])
    assert vector == same


async def test_a_picture_is_decoded_once_for_all_views_of_it(duals: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = scorer_of(duals("clip"), "?batch=2")
    opened: list[str] = []
    whole = Image.open

    def opening(self: Image) -> Any:
        opened.append(self.name)
        return whole(self)

    monkeypatch.setattr(Image, "open", opening)
    views = [RegionView("crop", ((0, 0, side, side),)) for side in (20, 40, 60)]
    await scorer.score(IMAGES[0], TEXTS)  # a first batch, while which the others gather
    opened.clear()

    asked = [(image, view) for view in views for image in IMAGES]
    scores = await asyncio.gather(*(scorer.score(image, TEXTS, view=view) for image, view in asked))

    assert Counter(opened) == {image.name: 1 for image in IMAGES}
    alone = scorer_of(duals("clip"), "?batch=1")
    for (image, view), row in zip(asked, scores, strict=True):
        assert await alone.score(image, TEXTS, view=view) == pytest.approx(row, abs=CLOSE)


async def test_texts_are_looked_at_once_for_many_pictures(duals: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = scorer_of(duals("clip"))
    read: list[str] = []
    fits = Towers.fits

    def reading(self: Towers, text: str) -> bool:
        read.append(text)
        return fits(self, text)

    monkeypatch.setattr(Towers, "fits", reading)

    rows = [await scorer.fresh(image, TEXTS) for image in (*IMAGES, *IMAGES)]

    assert read == TEXTS
    assert rows[:2] == rows[2:] == [await scorer_of(duals("clip")).score(image, TEXTS) for image in IMAGES]


async def test_pictures_asked_about_at_once_share_a_batch_and_one_that_is_none_harms_no_other(
    duals: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = scorer_of(duals("clip"))
    sizes: list[int] = []
    pictures = Towers.pictures

    def counting(self: Towers, some: Sequence[Any]) -> Any:
        sizes.append(len(some))
        return pictures(self, some)

    monkeypatch.setattr(Towers, "pictures", counting)
    await scorer.score(IMAGES[0], ["warm up"])
    broken = Image.from_bytes(IMAGES[0].data[:-2000], name="broken")
    all_of = [*(Image.from_bytes(image.data, name="x") for image in IMAGES), broken]

    came = await asyncio.gather(*(scorer.score(image, TEXTS) for image in all_of), return_exceptions=True)

    assert [type(each) for each in came] == [list, list, BadImage]
    assert sum(sizes) == 2


async def test_a_search_among_many_texts(duals: Folders, tmp_path: Path) -> None:
    texts = [f"a {noun} number {number}" for number in range(40) for noun in ("cup", "coin", "horse")]
    with open_records(tmp_path) as store:
        engine = Engine(records=store)
        scores = await scorer_of(duals("clip"), records=MemoryStore()).score(IMAGES[0], texts)
        hits = await best_texts(IMAGES[0], texts, scorer=f"clip:{duals('clip')}", k=5, block=16, engine=engine)
        (same,) = await nearest_texts([texts[7]], texts, embedder=f"clip:{duals('clip')}", k=2, engine=engine)

    order = sorted(range(len(texts)), key=lambda place: (-scores[place], place))
    assert [(hit.place, hit.score) for hit in hits] == [(place, scores[place]) for place in order[:5]]
    assert same[0].place == 7


async def test_a_batch_that_does_not_fit_is_halved(
    duals: Folders, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scorer = scorer_of(duals("clip"), "?batch=8")
    expected = await scorer_of(duals("clip"), "?batch=1").score(IMAGES[0], TEXTS)
    crowd(monkeypatch, most=1)

    with caplog.at_level(logging.WARNING, "askance"):
        assert await scorer.score(IMAGES[0], TEXTS) == pytest.approx(expected, abs=1e-6)
    assert [record.message.split(": ")[-1] for record in caplog.records] == [
        "a batch of 3 did not fit into memory; batches have at most 1 from now on.",
    ]
    crowd(monkeypatch, most=0)
    with pytest.raises(OutOfMemory, match=r"memory for one text or picture: DefaultCPUAllocator: not enough"):
        await scorer.score(IMAGES[0], ["another text"])


_FORWARD: dict[str, Any] = {}


def crowd(monkeypatch: pytest.MonkeyPatch, *, most: int) -> None:
    """Leaves memory for so many texts at a time."""
    forward = _FORWARD.setdefault("texts", t.CLIPModel.get_text_features)

    def narrow(self: Any, **inputs: Any) -> Any:
        if len(inputs["input_ids"]) > most:
            msg = "DefaultCPUAllocator: not enough memory"
            raise RuntimeError(msg)
        return forward(self, **inputs)

    monkeypatch.setattr(t.CLIPModel, "get_text_features", narrow)


async def test_numbers_that_are_none_are_no_scores(duals: Folders, tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    import_module("shutil").copytree(duals("clip"), folder)
    spoil(folder, "token_embedding")
    with open_records(tmp_path / "store") as store:
        with pytest.raises(ModelError, match=r"gave numbers that are none for texts\. In float16 numbers may run over"):
            await scorer_of(folder, records=store).score(IMAGES[0], TEXTS)
        assert len(store) == 0


async def test_a_damaged_file_of_vectors_gives_no_score(duals: Folders, tmp_path: Path) -> None:
    with open_records(tmp_path) as store:
        await scorer_of(duals("clip"), records=store).score(IMAGES[0], TEXTS)
        (file,) = (tmp_path / "vectors").glob("*.rows")
        data = bytearray(file.read_bytes())
        data[-3] ^= 255
        file.write_bytes(bytes(data))
        count = len(store)

        with pytest.raises(StoreError, match=r"cannot be used: the checksum of row .* Delete it"):
            await scorer_of(duals("clip"), "?scale=logits", records=store).score(IMAGES[0], TEXTS)
        assert len(store) == count
        file.unlink()
        assert await scorer_of(duals("clip"), "?scale=logits", records=store).score(IMAGES[0], TEXTS)


async def test_half_precision_is_another_identity(duals: Folders) -> None:
    whole, halves = DualEncoder(str(duals("clip"))), scorer_of(duals("clip"), "?dtype=bfloat16&device=cpu")

    assert str(halves.id) == str(whole.id).replace(":float32", ":bfloat16")
    expected = await scorer_of(duals("clip")).score(IMAGES[0], TEXTS)
    assert await halves.score(IMAGES[0], TEXTS) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("texts", [[""], ["tea", " \n"]], ids=["empty", "blank"])
async def test_an_empty_text_is_refused(duals: Folders, texts: list[str]) -> None:
    with pytest.raises(UsageError, match=f"^Text {len(texts)} of {len(texts)} is empty"):
        await scorer_of(duals("clip")).score(IMAGES[0], texts)


def test_a_model_of_text_alone_has_no_towers(sentences: Folders) -> None:
    with pytest.raises(ConfigError, match=r"is of the kind 'bert', which has not a tower for pictures and one"):
        scorer_of(sentences("encoder", plain=True))


async def test_a_language_model_with_eyes_has_no_towers(tiny_llava: Path) -> None:
    with pytest.raises(ConfigError, match=r"is of the kind 'llava', which has not a tower for pictures"):
        await scorer_of(tiny_llava).score(IMAGES[0], TEXTS)


async def test_what_is_missing_of_the_weights_is_named(duals: Folders, tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    import_module("shutil").copytree(duals("clip"), folder)
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    with pytest.raises(ConfigError, match=r"1 of its 2 files of weights are missing, the first is 'model-2\.safe"):
        scorer_of(folder)


@pytest.fixture
def tiny_llava(tmp_path: Path) -> Path:
    torch.manual_seed(7)
    import_module("tests.slow.make_tiny").llava(tmp_path / "llava")
    return tmp_path / "llava"
