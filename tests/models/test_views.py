"""Views of a picture in questions to a chat model: what is sent, what is on record, and what is replayed."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from askance.chat import ChatRequest, ImagePart, Message, ModelId, ResponseFormat, TextPart
from askance.errors import BadImage, ReplayMiss, UsageError
from askance.images import CLEAN_POLICY, WHOLE_IMAGE, Image, RegionView, Shown, view_policy
from askance.images.pixels import MEAN_COLOUR
from askance.models import Engine, Model, ScriptedModel, get_model
from askance.models.batch.target import line_of
from askance.models.image_data import encode
from askance.models.langchain.messages import to_langchain
from askance.models.local.batch_row import decoded
from askance.models.openai.dialect import Dialect, to_body
from askance.models.recorder import sent_images
from askance.models.settings import ModelSettings
from askance.models.token_estimate import picture_tokens, size_of, token_statistics
from askance.models.vllm.payload import to_messages, with_extensions
from askance.replay import MemoryStore, Mode, Record, export_cassette, read_cassette, read_pictures
from tests.images import samples
from tests.servers import FakeEndpoint

LEFT = RegionView("crop", ((0, 0, 8, 16),))
RIGHT = RegionView("crop", ((500, 0, 1000, 1000),), "thousandths")
RED, BLUE = (200, 0, 0), (0, 0, 200)


@pytest.fixture
def image() -> Image:
    halves = Pillow.new("RGB", (16, 16), RED)
    halves.paste(BLUE, (8, 0, 16, 16))
    return Image.from_pil(halves, name="halves.png")


def model_at(endpoint: FakeEndpoint, records: MemoryStore, *, mode: Mode = "auto") -> Model:
    engine = Engine(records=records, mode=mode)
    return get_model(f"openai:fake-model@{endpoint.url}", identity="fake", engine=engine)


def question(model: Model, image: Image, *views: RegionView) -> Any:
    parts = [model.image(image, view) for view in views]
    return model.request([Message("user", (*parts, TextPart("What differs?")))])


def pictures_in(body: Any) -> list[Pillow.Image]:
    parts = [part for part in body["messages"][0]["content"] if part["type"] == "image_url"]
    return [Pillow.open(BytesIO(base64.b64decode(part["image_url"]["url"].partition(",")[2]))) for part in parts]


async def test_two_crops_of_one_picture_go_into_one_request_and_stand_on_record_both(
    image: Image, tmp_path: Path
) -> None:
    records, cassette = MemoryStore(), tmp_path / "views.jsonl"
    with FakeEndpoint(["They differ."]) as endpoint:
        model = model_at(endpoint, records)
        request = question(model, image, LEFT, RIGHT)
        answer = await model.generate(request)
        await model.aclose()
        sent = pictures_in(endpoint.bodies[0])

    assert [(each.size, each.getpixel((4, 4))) for each in sent] == [((8, 16), RED), ((8, 16), BLUE)]
    (record,) = records
    left, right = (Shown(image, view=view) for view in (LEFT, RIGHT))
    assert record.images == {
        shown.key: {
            "sent": shown.prepare().sha256,
            "media_type": "image/png",
            "width": 8,
            "height": 16,
            "source": image.sha256,
        }
        for shown in (left, right)
    }
    assert len(record.images) == 2

    # The cassette carries the picture that both are cut out of, and replays without it.
    export_cassette(records, cassette, images={image.sha256: image.data})
    assert [each.sha256 for each in read_pictures(cassette)] == [image.sha256]
    replay = get_model(
        "openai:gone@http://127.0.0.1:9/v1",
        identity="fake",
        engine=Engine(records=MemoryStore(read_cassette(cassette)), mode="replay"),
    )
    unseen = Image.from_digest(image.sha256)
    assert (await replay.generate(question(replay, unseen, LEFT, RIGHT))).text == answer.text == "They differ."


async def test_a_second_view_after_the_first_is_asked_about_itself(image: Image) -> None:
    records = MemoryStore()
    views = (WHOLE_IMAGE, LEFT, RIGHT, WHOLE_IMAGE, LEFT)
    with FakeEndpoint(["whole", "left", "right"]) as endpoint:
        model = model_at(endpoint, records)
        answers = [(await model.generate(question(model, image, view))).text for view in views]
        await model.aclose()
        sent = [pictures_in(body)[0] for body in endpoint.bodies]

    assert answers == ["whole", "left", "right", "whole", "left"]
    assert [each.size for each in sent] == [(16, 16), (8, 16), (8, 16)]
    assert [set(record.images) for record in records.of_kind("chat")] == [
        {Shown(image, view=view).key} for view in views[:3]
    ]


def test_questions_about_one_view_in_turn_share_one_part(image: Image) -> None:
    model = get_model(ScriptedModel([]), engine=Engine(records=MemoryStore()))
    assert model.image(image, LEFT) is model.image(image, RegionView("crop", LEFT.boxes))
    assert model.image(image) is model.image(image)


async def test_a_replay_of_another_view_is_a_miss(image: Image) -> None:
    records = MemoryStore()
    model = get_model(ScriptedModel(["left"], identity="script"), engine=Engine(records=records))
    await model.generate(question(model, image, LEFT))
    replay = get_model(ScriptedModel([], identity="script"), engine=Engine(records=records, mode="replay"))
    with pytest.raises(ReplayMiss, match=r"boxes|view"):
        await replay.generate(question(replay, image, RIGHT))


def test_a_view_is_estimated_by_its_own_size() -> None:
    large = Image.from_pil(Pillow.new("RGB", (2048, 2048)))
    model = get_model("openai:gpt-4o", engine=Engine(records=MemoryStore()))
    tile = RegionView("crop", ((0, 0, 512, 512),))
    whole, part = (size_of(question(model, large, view)).pictures for view in (WHOLE_IMAGE, tile))
    assert part.expected < whole.expected


def test_what_was_sent_of_a_view_counts_in_what_calls_on_record_took(image: Image) -> None:
    model = get_model("openai:gpt-4o", engine=Engine(records=MemoryStore()))
    form = ResponseFormat("json_schema", "Answer", {})
    request = replace(question(model, image, LEFT, RIGHT), response=form)
    response = {"text": "", "finish": "stop", "usage": {"input": 100, "output": 1}}

    def estimated(images: Any) -> float:
        records = MemoryStore([Record.make("chat", request.canonical(), response, images=images)])
        (found,) = token_statistics(records, [model.id]).values()
        return found.estimated

    assert estimated(sent_images(request)) - estimated({}) == 2 * picture_tokens("gpt-4o", 8, 16).expected


async def test_a_box_outside_ends_one_call(image: Image) -> None:
    with FakeEndpoint() as endpoint:
        model = model_at(endpoint, MemoryStore())
        with pytest.raises(BadImage, match=r"^The box \(90, 90, 99, 99\) lies outside the picture 'halves\.png'"):
            await model.generate(question(model, image, RegionView("crop", ((90, 90, 99, 99),))))
        await model.aclose()
    assert not endpoint.requests


def test_a_part_of_a_message_is_one_picture(image: Image) -> None:
    with pytest.raises(UsageError, match=r"^The view 'both' is two pictures"):
        ImagePart(Shown(image, view=RegionView("both", LEFT.boxes)))


# --- the same picture, whoever is asked ---


def _of_uri(uri: str) -> Pillow.Image:
    return Pillow.open(BytesIO(base64.b64decode(uri.partition(",")[2])))


def _chat(request: ChatRequest) -> list[Pillow.Image]:
    return pictures_in(to_body(request, encode, api="chat", model="m", dialect=Dialect()))


def _responses(request: ChatRequest) -> list[Pillow.Image]:
    body = to_body(request, encode, api="responses", model="m", dialect=Dialect())
    return [_of_uri(part["image_url"]) for part in body["input"][0]["content"] if part["type"] == "input_image"]


def _batch(request: ChatRequest) -> list[Pillow.Image]:
    settings = ModelSettings(id=ModelId("openai", "m", "http://127.0.0.1:9/v1"))
    return pictures_in(json.loads(line_of(request, settings, Dialect()))["body"])


def _vllm(request: ChatRequest) -> list[Pillow.Image]:
    return pictures_in(with_extensions(request, to_body(request, encode, api="chat", model="m", dialect=Dialect())))


def _vllm_in_process(request: ChatRequest) -> list[Pillow.Image]:
    (message,) = to_messages(request, decoded(request))
    return [part["image_pil"] for part in message["content"] if part["type"] == "image_pil"]


def _langchain(request: ChatRequest) -> list[Pillow.Image]:
    content: Any = to_langchain(request.messages[0], encode).content
    return [_of_uri(f"data:,{part['base64']}") for part in content if part["type"] == "image"]


BACKENDS: dict[str, Callable[[ChatRequest], list[Pillow.Image]]] = {
    "chat": _chat,
    "responses": _responses,
    "batch": _batch,
    "hf": decoded,
    "vllm": _vllm,
    "vllm in process": _vllm_in_process,
    "langchain": _langchain,
}


@pytest.mark.parametrize("sees", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("orientation", [1, 6])
def test_every_backend_is_sent_the_view_as_it_is_drawn(sees: Any, orientation: int) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    photo = Image.from_bytes(samples.encoded(samples.photo((60, 40)), "PNG", exif=exif), name="photo")
    box = (5, 4, 30, 36)
    views = [
        *(RegionView(show, (box,), "native pixels", "sherlock") for show in ("highlight", "hide", "blackout")),
        RegionView("position", (box,), "native pixels"),
        RegionView("crop", (box,), "native pixels"),
    ]
    model = get_model("openai:m@http://127.0.0.1:9/v1", engine=Engine(records=MemoryStore()))

    sent = sees(question(model, photo, *views))

    assert [each.convert("RGB").tobytes() for each in sent] == [view.render(photo)[0].tobytes() for view in views]
    assert sent[-1].size == ((25, 32) if orientation == 1 else (32, 25))


def test_a_part_is_sent_large_enough_to_be_read(image: Image) -> None:
    model = get_model(ScriptedModel([], identity="scripted"), engine=Engine(records=MemoryStore()))
    close = view_policy(model.settings.image_policy)
    part = model.image(image, LEFT, close)
    assert model.image(image, LEFT, close) is part
    assert model.image(image, LEFT) != part
    sent = Pillow.open(BytesIO(part.shown.prepare().data))
    assert sent.size == part.shown.size == (224, 448)
    assert near(sent.getpixel((112, 224)), RED)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_box_stays_on_what_it_surrounds_when_the_picture_is_turned_and_scaled(orientation: int) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    stored = Pillow.new("RGB", (400, 200), BLUE)
    stored.paste(RED, (40, 20, 120, 100))
    photo = Image.from_bytes(samples.encoded(stored, "JPEG", exif=exif, quality=95), name="photo")
    small = replace(CLEAN_POLICY, max_side=100)
    view = RegionView("blackout", ((40, 20, 120, 100),), "native pixels")

    sent = Pillow.open(BytesIO(Shown(photo, small, view).prepare().data))
    bare = Pillow.open(BytesIO(Shown(photo, small).prepare().data))

    assert sent.size == bare.size == ((50, 100) if orientation > 4 else (100, 50))
    spots = [*product(range(0, sent.width, 5), range(0, sent.height, 5))]
    pairs: list[Any] = [(bare.getpixel(spot), sent.getpixel(spot)) for spot in spots]
    # A spot near the edge of the box is neither red nor blue.
    inside = [shown for (red, _, blue), shown in pairs if red - blue > 150]
    outside = [shown for (red, _, blue), shown in pairs if blue - red > 150]
    assert (len(inside) > 5, len(outside) > 100) == (True, True)
    assert all(near(shown, RED) for shown in inside)
    assert all(near(shown, MEAN_COLOUR) for shown in outside)


def near(one: Any, other: Any) -> bool:
    return all(abs(a - b) < 40 for a, b in zip(one, other, strict=True))
