"""From a request to a row: its prompt written down, cut into tokens, its pictures made into pixels."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from askance.errors import ContextExceeded, ImagesRejected
from askance.images import Image
from askance.models.local.rows import MOST_TOKENS, Choice, Row

if TYPE_CHECKING:
    from askance.chat import ChatRequest
    from askance.models.local.loaded import Loaded
    from askance.models.local.prompting import Prompter

_TYPES = ("token_type_ids", "mm_token_type_ids")


def to_row(request: ChatRequest, loaded: Loaded, prompter: Prompter) -> Row:
    """The row that asks `request`.

    Raises:
        ImagesRejected: the model takes no pictures, or not so many.
        ContextExceeded: the prompt is longer than the model reads.
        BadRequest: see `Prompter.text` and `Choice.of`.
        BadImage: a picture cannot be used.
    """
    choice = Choice.of(request, loaded.own)
    _check_pictures(request, loaded)
    prepared = [part.image.prepare(part.policy) for part in request.images]
    text = prompter.text(request)
    start = loaded.tokenizer.bos_token
    # A template writes the mark that begins a prompt itself.
    begun = prompter.template is not None and (not start or text.startswith(start) or loaded.processor is None)
    how: dict[str, Any] = {"return_tensors": "pt", "add_special_tokens": not begun}
    if loaded.processor is None:
        made = dict(loaded.tokenizer(text, **how))
    else:
        pixels = [Image.from_bytes(each.data).open().convert("RGB") for each in prepared]
        made = dict(loaded.processor(text=text, images=pixels or None, **how))
    ids: list[int] = made.pop("input_ids")[0].tolist()
    made.pop("attention_mask", None)
    places = [place for place, token in enumerate(ids) if token == loaded.picture_token] if prepared else []
    return Row(
        request=request,
        ids=ids,
        types={name: made.pop(name)[0].tolist() for name in _TYPES if name in made},
        # Without a picture nothing reads what goes with one, such as the words for InstructBLIP's Q-Former.
        inputs=made if prepared else {},
        pictures=tuple(sha256(each.data).hexdigest() for each in prepared),
        picture_tokens=len(places),
        picture_end=places[-1] + 1 if places else 0,
        limit=_limit(request, len(ids), loaded),
        choice=choice,
    )


def _check_pictures(request: ChatRequest, loaded: Loaded) -> None:
    count = len(request.images)
    if count and loaded.processor is None:
        raise ImagesRejected(
            f"The model {str(request.model)!r} ({loaded.kind}) is of text alone and was given a picture.",
            hint="Ask a vision-language model about pictures.",
        )
    if count > 1 and loaded.known.single:
        raise ImagesRejected(
            f"The model {str(request.model)!r} ({loaded.kind}) looks at one picture and was given {count}.",
            hint="Ask about one picture at a time, or give a model that looks at several.",
        )


def _limit(request: ChatRequest, prompt: int, loaded: Loaded) -> int:
    """Tokens that the answer may have.

    Raises:
        ContextExceeded: there is room for none.
    """
    wanted = request.sampling.max_tokens or MOST_TOKENS
    if loaded.model.config.is_encoder_decoder:
        return wanted
    room = loaded.context - prompt
    if room < 1:
        raise ContextExceeded(
            f"The prompt has {prompt} tokens, and {str(request.model)!r} reads {loaded.context}, its answer included.",
            hint="Ask with less, or take a model with a longer context.",
        )
    return min(wanted, room)
