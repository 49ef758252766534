"""The losses beside short references that share no code with them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest

from askance.images import RegionView
from askance.training import ChatExample, ChoiceExample, Fit, FitRecipe, PairExample, TextExample
from askance.training.encoder_objective import Losses, first_places
from askance.training.objective import Control, DrawnExamples
from tests.training.colour_shapes import KindOfSet, examples, picture
from tests.training.conftest import DrawnSet, Learner

torch: Any = pytest.importorskip("torch", reason="TRL is not installed; tests/slow/test_training.py runs this")
pytest.importorskip("trl")
transformers: Any = import_module("transformers")
pytestmark = pytest.mark.slow(group="training")


def objective_of(recipe: str, kind: KindOfSet, base: str, drawn_set: DrawnSet, **changes: Any) -> Any:
    fields = {"augment": (), "patience": None, **changes}
    objective = Fit(recipe=FitRecipe.named(recipe, **fields), data=drawn_set(kind), base=base, device="cpu").objective()
    objective.model.eval()
    return objective


def batch_of(objective: Any, rows: Sequence[Any]) -> Any:
    drawn = DrawnExamples(rows, seed=None)
    return objective.collate([drawn[place] for place in range(len(rows))])


def cross_entropy(scores: Sequence[float], own: int) -> float:
    return math.log(sum(math.exp(score) for score in scores)) - scores[own]


def cosine(a: Any, b: Any) -> float:
    return float(a @ b / (a.norm() * b.norm()))


def vectors(folder: Path, pictures: Sequence[Any], texts: Sequence[str]) -> tuple[list[Any], list[Any], float]:
    """Of each picture and text one by one, without any padding; and the model's scale."""
    model = transformers.CLIPModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    pixels = transformers.CLIPImageProcessorPil.from_pretrained(folder)
    with torch.no_grad():
        seen = [model.get_image_features(**pixels(images=each, return_tensors="pt")) for each in pictures]
        read = [model.get_text_features(**tokenizer(each, return_tensors="pt")) for each in texts]
    squeezed = [[getattr(each, "pooler_output", each)[0] for each in some] for some in (seen, read)]
    return squeezed[0], squeezed[1], float(model.logit_scale.detach().exp())


def test_the_loss_over_own_choices(drawn_set: DrawnSet, learner: Learner) -> None:
    objective = objective_of("newyorker-clip", "choices", f"clip:{learner('clip')}", drawn_set, frame="whole")
    rows = cast("list[ChoiceExample]", list(examples("choices", 4, seed=5)))
    rows[1] = ChoiceExample(image=rows[1].image, choices=rows[1].choices[:2], label=1)
    texts = [text for row in rows for text in row.choices]
    seen, read, scale = vectors(learner("clip"), [row.image.open() for row in rows], texts)

    loss, chosen = objective.loss(objective.model, batch_of(objective, rows))

    left, expected, best = list(read), list[float](), list[int]()
    for row, vector in zip(rows, seen, strict=True):
        scores = [scale * cosine(vector, left.pop(0)) for _ in row.choices]
        expected.append(cross_entropy(scores, row.label))
        best.append(scores.index(max(scores)))
    assert loss.item() == pytest.approx(sum(expected) / 4, abs=1e-4)
    assert chosen.tolist() == best


def test_the_loss_over_pairs_of_a_batch_with_wide_pictures(drawn_set: DrawnSet, learner: Learner) -> None:
    objective = objective_of("sherlock-clip", "pairs", f"clip:{learner('clip')}", drawn_set)
    draw = random.Random(3)
    wide = [_wide(draw) for _ in range(3)]
    box = RegionView(show="highlight", boxes=((4, 4, 20, 20),), style="sherlock")
    kinds = ("clue", "inference", "clue")
    rows = [
        PairExample(image=image, view=box, text=f"a {name}", kind=kind)
        for image, name, kind in zip(wide, ("cup", "horse", "rocket"), kinds, strict=True)
    ]
    shown = [box.draw(image.open().convert("RGB"), image)[0] for image in wide]
    halves = [half for each in shown for half in (each.crop((0, 0, 32, 32)), each.crop((16, 0, 48, 32)))]
    seen, read, scale = vectors(learner("clip"), halves, ["clue: a cup", "inference: a horse", "clue: a rocket"])

    loss, _ = objective.loss(objective.model, batch_of(objective, rows))

    means = [(seen[2 * place] + seen[2 * place + 1]) / 2 for place in range(3)]
    table = [[scale * cosine(mean, text) for text in read] for mean in means]
    there = [cross_entropy(table[place], place) for place in range(3)]
    back = [cross_entropy([line[place] for line in table], place) for place in range(3)]
    assert loss.item() == pytest.approx((sum(there) + sum(back)) / 6, abs=1e-4)


def _wide(draw: random.Random) -> Any:
    from askance.images import Image

    canvas = picture("red", "circle", draw).open().resize((48, 32))
    canvas.paste((20, 200, 90), (draw.randint(0, 20), 4, 34, 20))
    return Image.from_pil(canvas)


def test_equal_texts_are_no_negatives_where_they_are_masked() -> None:
    class Model:
        logit_scale = torch.tensor(0.0)

        def get_text_features(self, input_ids: Any) -> Any:
            return input_ids

        def get_image_features(self, pixel_values: Any) -> Any:
            return pixel_values

    eye = torch.eye(3)
    batch = {
        "input_ids": eye[[0, 0, 1]],
        "pixel_values": eye[[0, 2, 1]],
        "squares": torch.tensor([1, 1, 1]),
        "texts": torch.tensor([1, 1, 1]),
        "distinct": torch.tensor([0, 0, 1]),
    }

    plain, masked = (Losses(torch, mask_equal=mask).pairs(Model(), batch)[0].item() for mask in (False, True))

    table = [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    there = [cross_entropy(table[place], place) for place in range(3)]
    back = [cross_entropy([line[place] for line in table], place) for place in range(3)]
    assert plain == pytest.approx((sum(there) + sum(back)) / 6)
    rows = [([1.0, 0.0], 0), ([0.0, 0.0], 0), ([0.0, 0.0, 1.0], 2)]
    columns = [([1.0, 0.0], 0), ([0.0, 0.0], 0), ([0.0, 0.0, 1.0], 2)]
    assert masked == pytest.approx(sum(cross_entropy(*each) for each in (*rows, *columns)) / 6)


def test_first_places_are_counted_among_all_texts() -> None:
    pictures = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    texts = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])

    measured = first_places(torch.stack([pictures, texts], dim=1).numpy(), None)

    assert measured == {"p@1": pytest.approx(1 / 3)}


def test_first_places_go_by_blocks_and_forgive_what_rounding_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.training.encoder_objective._BLOCK", 2)
    pictures = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    texts = torch.tensor([[0.9, 0.0], [0.900001, 0.0], [0.0, 0.9], [0.8, 0.0], [0.0, 0.9]])

    measured = first_places(torch.stack([pictures, texts], dim=1).numpy(), None)

    assert measured == {"p@1": pytest.approx(4 / 5)}


def test_the_loss_on_targets_of_texts(drawn_set: DrawnSet, learner: Learner) -> None:
    objective = objective_of("sherlock-t5", "text", f"hf:{learner('t5')}", drawn_set)
    rows = cast("list[TextExample]", list(examples("text", 4, seed=5)))
    model = transformers.T5ForConditionalGeneration.from_pretrained(learner("t5")).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(learner("t5"))

    loss = objective.model(**batch_of(objective, rows)).loss.item()

    total, count = 0.0, 0
    for row in rows:
        labels = tokenizer(row.target, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            total += model(**tokenizer(row.input, return_tensors="pt"), labels=labels).loss.item() * labels.shape[1]
        count += labels.shape[1]
    assert loss == pytest.approx(total / count, abs=1e-4)


def reference(model: Any, ids: list[int], answer: list[int], **more: Any) -> tuple[float, int]:
    """The loss of an answer behind a prompt, summed over its tokens."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids + answer]), **more).logits[0].log_softmax(-1)
    return -sum(float(logits[len(ids) + place - 1, token]) for place, token in enumerate(answer)), len(answer)


def test_the_loss_on_answers_alone_by_the_models_own_template(drawn_set: DrawnSet, learner: Learner) -> None:
    objective = objective_of("lora", "words", f"hf:{learner('llama')}", drawn_set)
    rows = cast("list[ChatExample]", list(examples("words", 4, seed=5)))
    model = transformers.LlamaForCausalLM.from_pretrained(learner("llama")).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(learner("llama"))

    batch = batch_of(objective, rows)

    parts = list[tuple[float, int]]()
    for row in rows:
        asked, said = row.prompt[0]["content"][0]["text"], row.completion[0]["content"][0]["text"]
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": asked}], add_generation_prompt=True, tokenize=False
        )
        ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        end = tokenizer.convert_tokens_to_ids("</s>")  # its template writes another mark, which ends no answer of its
        parts.append(reference(model, ids, [*tokenizer(said, add_special_tokens=False)["input_ids"], end]))
    expected = sum(loss for loss, _ in parts) / sum(count for _, count in parts)
    assert objective.model(**batch).loss.item() == pytest.approx(expected, abs=1e-4)
    assert int((batch["labels"] != -100).sum()) == sum(count for _, count in parts)


def test_the_loss_on_answers_about_pictures(drawn_set: DrawnSet, learner: Learner) -> None:
    objective = objective_of("lora", "chat", f"hf:{learner('idefics3')}", drawn_set)
    rows = cast("list[ChatExample]", list(examples("chat", 3, seed=5)))
    model = transformers.Idefics3ForConditionalGeneration.from_pretrained(learner("idefics3")).eval()
    processor = transformers.AutoProcessor.from_pretrained(learner("idefics3"))

    loss = objective.model(**batch_of(objective, rows)).loss.item()

    total, count = 0.0, 0
    for row in rows:
        prompt = processor.apply_chat_template([dict(row.prompt[0])], add_generation_prompt=True, tokenize=False)
        inputs = processor(text=prompt, images=[row.images[0].open().convert("RGB")], return_tensors="pt")
        said = row.completion[0]["content"][0]["text"]
        answer = [*processor.tokenizer(said, add_special_tokens=False)["input_ids"], processor.tokenizer.eos_token_id]
        inputs.pop("attention_mask")
        ids = inputs.pop("input_ids")[0].tolist()
        part, tokens = reference(model, ids, answer, **inputs)
        total, count = total + part, count + tokens
    assert loss == pytest.approx(total / count, abs=1e-4)


@pytest.mark.parametrize("control", [None, "text-only"])
def test_the_loss_of_a_batch_is_the_mean_over_tokens_of_chats_with_some_one_and_no_pictures(
    control: Control | None, drawn_set: DrawnSet, learner: Learner
) -> None:
    objective = Fit(
        recipe=FitRecipe.named("lora"),
        data=drawn_set("chat"),
        base=f"hf:{learner('idefics3')}",
        control=control,
        device="cpu",
    ).objective()
    objective.model.eval()
    draw = random.Random(3)
    rows = [
        _chat(1, "It is a red circle.", draw),
        _chat(2, "Two circles, red both.", draw),
        _chat(0, "Yes.", draw),
        _chat(1, "No.", draw, wide=True),
    ]

    def loss(some: Sequence[ChatExample]) -> tuple[float, int]:
        batch = batch_of(objective, some)
        return objective.model(**batch).loss.item(), int((batch["labels"] != -100).sum())

    alone = [loss([row]) for row in rows]

    for chosen in ([0, 1, 2, 3], [0, 2], [1, 2], [2, 2]):
        total, count = (
            sum(alone[place][0] * alone[place][1] for place in chosen),
            sum(alone[place][1] for place in chosen),
        )
        assert loss([rows[place] for place in chosen]) == (pytest.approx(total / count, abs=1e-4), count)
    blind = loss([_chat(1, "It is a red circle.", draw)])[0] == pytest.approx(alone[0][0], abs=1e-7)
    assert blind == (control == "text-only")


def _chat(pictures: int, answer: str, draw: random.Random, *, wide: bool = False) -> ChatExample:
    shown = tuple(_wide(draw) if wide else picture("red", "circle", draw) for _ in range(pictures))
    asked = [*({"type": "image"} for _ in shown), {"type": "text", "text": "What is this?"}]
    said = {"role": "assistant", "content": [{"type": "text", "text": answer}]}
    return ChatExample(prompt=({"role": "user", "content": asked},), completion=(said,), images=shown)


@pytest.mark.parametrize("family", ["blip2", "blip2-t5"])
def test_the_loss_of_blip2_by_the_kind_of_its_language_model(
    family: str, drawn_set: DrawnSet, learner: Learner
) -> None:
    objective = objective_of("whoops-blip2", "chat", f"hf:{learner(family)}", drawn_set)
    rows = cast("list[ChatExample]", list(examples("chat", 3, seed=5)))
    model = transformers.Blip2ForConditionalGeneration.from_pretrained(learner(family)).eval()
    processor = transformers.AutoProcessor.from_pretrained(learner(family))
    end = processor.tokenizer.eos_token_id

    loss = objective.model(**batch_of(objective, rows)).loss.item()

    total, count = 0.0, 0
    for row in rows:
        image = row.images[0].open().convert("RGB")
        inputs = processor(text="Question: What is this? Answer:", images=[image], return_tensors="pt")
        said = processor.tokenizer(row.completion[0]["content"][0]["text"], add_special_tokens=False)["input_ids"]
        inputs.pop("attention_mask")
        if family == "blip2-t5":
            with torch.no_grad():
                each = model(**inputs, labels=torch.tensor([[*said, end]])).loss.item()
            part, tokens = each * (len(said) + 1), len(said) + 1
        else:
            part, tokens = reference(model, inputs.pop("input_ids")[0].tolist(), [*said, end], **inputs)
        total, count = total + part, count + tokens
    assert loss == pytest.approx(total / count, abs=1e-4)
