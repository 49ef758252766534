"""What a model is shown of a picture: which picture, how it is prepared, and all of it or a view.

Message parts and encoders hold this one value. Its canonical form is part of a request's key, and what was sent of it
stands on record by its own key. The canonical form has the digest of the source's bytes and never a path or a name. So
a replay decodes no picture, and a new version of Pillow changes no key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from askance.errors import UsageError
from askance.images.pixels import encode, scale_down
from askance.images.prepare import (
    CLEAN_POLICY,
    PREPARED_IMAGES,
    ImagePolicy,
    PreparedImage,
    prepare,
    prepare_drawn,
)
from askance.images.regions import WHOLE_IMAGE, RegionView

if TYPE_CHECKING:
    from askance.images.image import Image


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture as a model is shown it; everything in it but the picture's name can change an answer."""

    image: Image
    policy: ImagePolicy = CLEAN_POLICY
    """How it is prepared."""
    view: RegionView = WHOLE_IMAGE
    """What of it is shown; by default all of it, as it is."""

    def canonical(self) -> dict[str, Any]:
        """Digest, policy and view as JSON values; there is no view where all of the picture is shown.

        Raises:
            BadImage: its file cannot be read.
        """
        form: dict[str, Any] = {"sha256": self.image.sha256, "policy": self.policy.canonical()}
        view = self.view.canonical()
        return {**form, "view": view} if view else form

    @property
    def key(self) -> str:
        """What is known of it is filed under this key: see `key_of_shown`.

        Raises:
            BadImage: its file cannot be read.
        """
        return key_of_shown(self.canonical())

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in pixels, in which it is sent, as far as the picture's header tells.

        Raises:
            BadImage: the picture cannot be used, or a box lies outside it.
            UsageError: the view is two pictures.
        """
        self.check_single()
        info = self.image.info
        if self.view == WHOLE_IMAGE and self.policy.name == "original":
            return info.width, info.height
        return self.policy.sent_size(self.view.size_of(self.image))

    def prepare(self) -> PreparedImage:
        """It as it is sent, prepared once while the `Image` is in use.

        It may take milliseconds to decode and encode, and waits for another thread that prepares the same. On an event
        loop call it with `asyncio.to_thread`.

        Raises:
            BadImage: a picture that cannot be sent, or a box that lies outside it.
            UsageError: the view is two pictures.
        """
        image, policy, view = self.image, self.policy, self.view
        self.check_single()

        def make() -> PreparedImage:
            if view == WHOLE_IMAGE:
                return prepare(image.data, policy)
            (drawn,) = view.render(image)
            return prepare_drawn(drawn, image.info.format, policy)

        with image.errors_named():
            return PREPARED_IMAGES.get((image.sha256, policy, view), make, holder=image)

    def thumbnail(self, side: int = 256) -> bytes:
        """A small JPEG of it, with no side longer than `side` pixels.

        Raises:
            BadImage: a picture that cannot be decoded, or a box that lies outside it.
            UsageError: the view is two pictures.
        """
        self.check_single()
        if self.view == WHOLE_IMAGE:
            return self.image.thumbnail(side)
        (drawn,) = self.view.render(self.image)
        return encode(scale_down(drawn, side), "jpeg", quality=80)

    def check_single(self) -> None:
        """Refuses a view that is two pictures.

        Raises:
            UsageError: it is.
        """
        if self.view.show == "both":
            raise UsageError(
                "The view 'both' is two pictures, and one is sent at a time.",
                hint="Show the picture twice: once with the view `highlight`, once with `crop`.",
            )

    def __str__(self) -> str:
        """Such as `sha256:5f70…`, with the view where there is one."""
        digest = f"sha256:{self.image.sha256}"
        return digest if self.view == WHOLE_IMAGE else f"{digest}, {self.view}"


def key_of_shown(form: Mapping[str, Any]) -> str:
    """The key of what is shown, by its canonical form, which may have more fields than those of `Shown.canonical`.

    It is the digest of the picture's source where all of it is shown, else the digest of the form.
    """
    if "view" not in form:
        return form["sha256"]
    shown = {name: form[name] for name in ("sha256", "policy", "view")}
    return sha256(json.dumps(shown, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
