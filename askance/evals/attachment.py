"""`Attachment`: what belongs to the line of a sample and is more than a line should hold, as a file beside the lines.

The file is named by the sha256 of its content. It is written before the line, which has the digest and the size. So a
line is small, equal attachments are one file, and a file that was changed is found out when it is read. A sample whose
attachment is lost or was changed is answered again by the same command. A pack carries the attachments that its lines
name. A scorer with `takes="prediction"` gets them, also when a run is scored again without its data.

A kind of attachment is a subclass, an entry of a line (`askance.evals.run_format.SampleLine`) and a field of a
`Prediction`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final, Self, cast

from typing_extensions import override

from askance.amounts import shortened
from askance.chat import JsonObject
from askance.errors import UsageError
from askance.evals.run_format import fault

AGAIN: Final = "Take the file from a copy, or run the evaluation again: the same command answers the sample anew."
"""The way out where the file of an attachment cannot be used."""


class Attachment(ABC):
    """A file beside the lines of a run. Two are equal if their kind, size and content are.

    Args:
        content: of the file.
        size: what the line says of it beside the digest.
    """

    kind: ClassVar[str]
    """Its name: the entry of a line, and the field of a `Prediction`."""
    folder: ClassVar[str]
    """Where the files are, within the folder of a run."""
    suffix: ClassVar[str]
    """Of the name of a file."""
    line_form: ClassVar[type]
    """The typed dictionary of the entry."""

    __slots__ = ("_content", "_file", "_form", "_sample")

    def __init__(self, content: bytes, size: JsonObject) -> None:
        self._content: bytes | None = content
        self._file: Path | None = None
        self._sample = ""
        self._form: JsonObject = {"sha256": sha256(content).hexdigest(), **size}

    @classmethod
    def kept(cls, folder: Path, form: Any, *, sample: str = "") -> Self:
        """The attachment that a line names; its file is read, and checked, each time its content is asked for.

        Nothing of it is held, since a run may have thousands.

        Args:
            folder: of the run.
            form: the entry of the line; strangers may have written it.
            sample: id of the sample that the line is about, for messages.

        Raises:
            UsageError: the entry is none of this kind.
        """
        if (wrong := fault(form, cls.line_form)) is not None:
            raise UsageError(f"This is no {cls.kind} of a line: {shortened(str(form), 80)!r} ({wrong}).", hint=AGAIN)
        attachment = cls.__new__(cls)
        attachment._content, attachment._sample = None, sample
        attachment._form = {name: form[name] for name in cls.line_form.__annotations__}
        attachment._file = folder / attachment.place
        return attachment

    @property
    def digest(self) -> str:
        """sha256 of the content, 64 hex digits."""
        return self._form["sha256"]

    @property
    def place(self) -> str:
        """Its file within the folder of the run."""
        return f"{self.folder}/{self.digest}{self.suffix}"

    @property
    def content(self) -> bytes:
        """The content of its file, which has its digest.

        Raises:
            UsageError: the file is missing, too large, or was changed.
        """
        return self._content if self._content is not None else self._read(cast("Path", self._file))

    @property
    def whole(self) -> bool:
        """Whether it can be read."""
        try:
            self.check()
        except UsageError:
            return False
        return True

    @abstractmethod
    def check(self) -> None:
        """Reads it.

        Raises:
            UsageError: its file is missing, was changed, or holds nothing of this kind.
        """

    def form(self) -> JsonObject:
        """What the line of a sample holds of it."""
        return dict(self._form)

    @property
    def _where(self) -> str:
        """It, as the subject of a message."""
        if self._file is None:
            return f"This {self.kind}"
        return f"The {self.kind} {str(self._file)!r}" + (f" of the sample {self._sample!r}" if self._sample else "")

    @property
    @abstractmethod
    def _most_bytes(self) -> int:
        """Most bytes that its file may have."""

    def _read(self, file: Path) -> bytes:
        try:
            if file.is_symlink() or file.parent.is_symlink() or not file.is_file():
                raise UsageError(f"{self._where} is missing.", hint=AGAIN)
            with file.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                if size > self._most_bytes:
                    raise UsageError(f"{self._where} is larger than {_amount(self._most_bytes)}.", hint=AGAIN)
                content = stream.read(size)
        except OSError as error:
            raise UsageError(f"{self._where} cannot be read: {error.strerror}.", hint=AGAIN) from error
        if sha256(content).hexdigest() != self.digest:
            raise UsageError(
                f"{self._where} was changed: its content does not have the digest of its name.", hint=AGAIN
            )
        return content

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attachment) and (self.kind, self._form) == (other.kind, other.form())

    @override
    def __hash__(self) -> int:
        return hash(self.digest)


def _amount(count: int) -> str:
    return f"{count >> 20} MB" if count >> 20 else f"{count:,} bytes"
