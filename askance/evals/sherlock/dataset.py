"""`Sherlock`: the corpus, the leaderboard and the pictures in a folder."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

from askance.amounts import many
from askance.errors import BadData
from askance.evals.sherlock.instance import MEND, Instance, read_instance, read_proposals
from askance.evals.sherlock.layout import IMAGES, LeaderboardTask, SherlockFiles, Split, pairs_name, picture_path
from askance.evals.sherlock.leaderboard import Leaderboard, RatedRegion, rated_regions, read_leaderboard
from askance.evals.suite.files import Problems, noting
from askance.images import Image
from askance.images.regions import Box, plain


@dataclass(frozen=True, kw_only=True)
class Sherlock:
    """The instances, rated regions and pictures of a folder; `open` makes one. Files are read when they are needed."""

    files: SherlockFiles
    images: Path
    """Folder of the pictures."""
    split: Split = "val"
    """The corpus that is read."""
    problems: Problems | None = None
    notes: list[str] = field(default_factory=list[str], init=False)
    """What is to be known about the files that were read so far, one sentence each."""

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        images: str | Path | None = None,
        split: Split = "val",
        problems: Problems | None = None,
    ) -> Sherlock:
        """The data in a folder (see `askance.evals.sherlock.layout`); only names are read here.

        Args:
            folder: with the data set.
            images: folder of the pictures; by default `images` of the folder, or the folder itself.
            split: the corpus whose instances are wanted.
            problems: takes the errors of single rows, which are then left out; without it the first error is raised.

        Raises:
            BadData: a folder is missing, it holds nothing of the data set, or an archive cannot be read.
        """
        home = Path(folder)
        files = SherlockFiles.scan(home)
        inside = home / IMAGES
        pictures = Path(images) if images is not None else inside if inside.is_dir() else home
        if not pictures.is_dir():
            raise BadData(f"There is no folder of pictures {str(pictures)!r}.", hint="Mend the path.")
        return cls(files=files, images=pictures, split=split, problems=problems)

    @property
    def folder(self) -> Path:
        """Where the data set lies."""
        return self.files.folder

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        """The instances of the corpus, in the order of the file.

        Raises:
            BadData: the folder has no such corpus, it cannot be read, or a row is not as it should be.
        """
        file = self.files.corpora.get(self.split)
        if file is None:
            has = f"the corpus for {' and '.join(self.files.corpora)}" if self.files.corpora else "leaderboard files"
            raise BadData(
                f"The folder {str(self.folder)!r} has no corpus for {self.split}; it has {has}.",
                hint=f"Fetch sherlock_{self.split}{'_with_split_idxs' * (self.split == 'val')}_v1_1.json.zip.",
            )
        by_id: dict[str, Instance] = {}
        sizes: dict[str, tuple[int, int]] = {}
        for place, row in file.stream():
            where = f"The file {str(file)!r}, item {place}"
            with noting(self.problems):
                if isinstance(place, str):
                    raise BadData(f"The file {str(file)!r} holds a JSON object, not a list of instances.", hint=MEND)
                instance = read_instance(row, where)
                if instance.id in by_id:
                    raise BadData(f"{where}: the instance {instance.id!r} stands there twice.", hint=MEND)
                size = instance.width, instance.height
                if sizes.setdefault(instance.url, size) != size:
                    width, height = sizes[instance.url]
                    raise BadData(
                        f"{where}: its image has {size[0]}×{size[1]} pixels, and before it had {width}×{height}.",
                        hint=MEND,
                    )
                by_id[instance.id] = instance
        if not by_id:
            raise BadData(f"The file {str(file)!r} has no instance that can be used.", hint=MEND)
        if self.split in self.files.deprecated:
            self.notes.append(
                f"The corpus {str(file)!r} is version 1, which the authors call deprecated; version 1.1 goes before it."
            )
        return tuple(by_id.values())

    @cached_property
    def chunks(self) -> tuple[int, ...]:
        """The chunks of the corpus that are there, in order; none in training."""
        return tuple(sorted(self._by_chunk))

    def of_chunk(self, chunk: int) -> tuple[Instance, ...]:
        """The instances of a chunk, in the order of the file.

        Raises:
            BadData: the corpus has no such chunk.
        """
        if chunk not in self._by_chunk:
            known = f"the chunks {', '.join(map(str, self.chunks))}" if self.chunks else "no chunks"
            raise BadData(
                f"The corpus for {self.split} in {str(self.folder)!r} has no chunk {chunk}; it has {known}.",
                hint="Chunks are parts of the validation corpus, 0 to 22: its file has them as 'split_idx'.",
            )
        return tuple(self._by_chunk[chunk])

    def of_image(self, url: str) -> tuple[Instance, ...]:
        """The instances of an image, in the order of the file; none for an image that is not in the corpus."""
        return tuple(self._by_image.get(url, ()))

    @property
    def urls(self) -> tuple[str, ...]:
        """The images of the corpus, in the order in which they first stand in the file."""
        return tuple(self._by_image)

    def picture(self, url: str) -> Image | None:
        """The picture of an image, from the folders of pictures; None if it is not there. Nothing is fetched."""
        path = picture_path(url, self.images)
        return None if path is None else Image.from_path(path)

    def leaderboard(self, task: LeaderboardTask, split: Split = "test", chunk: int | None = None) -> Leaderboard:
        """The pairs that the leaderboard asks for; they are read anew each time, as most are large.

        Args:
            task: the task.
            split: val or test.
            chunk: of retrieval, whose files hold one chunk each.

        Raises:
            BadData: the folder does not have them, or they are not as they should be.
        """
        key = split, task, chunk
        if key not in self.files.leaderboard:
            others = ", ".join(map(pairs_name, self.files.leaderboard)) or "none of the leaderboard"
            raise BadData(
                f"The folder {str(self.folder)!r} has no {pairs_name(key)}_instances.json; it has {others}.",
                hint=f"Fetch {split}_{task}{'_public' * (split == 'test')}.zip.",
            )
        return read_leaderboard(key, self.files.leaderboard[key])

    def comparison(self, split: Split = "val") -> tuple[RatedRegion, ...]:
        """The regions whose candidates people rated, with the ratings; those of the test set are hidden.

        Raises:
            BadData: the folder does not have them, or they are not as they should be.
        """
        leaderboard = self.leaderboard("comparison", split)
        of_corpus = split == self.split and split in self.files.corpora
        confidences = {instance.id: instance.confidence for instance in self.instances} if of_corpus else {}
        regions = rated_regions(leaderboard, self.files.leaderboard[split, "comparison", None], confidences)
        if (rated := sum(len(region.candidates) for region in regions)) < len(leaderboard.ids):
            self.notes.append(
                f"The answers rate {rated:,} of the {len(leaderboard.ids):,} pairs of {split}_comparison; the other "
                "pairs are left out."
            )
        return regions

    def proposals(self, url: str) -> tuple[Box, ...]:
        """The boxes that a detector proposes for an image of the corpus, in the order of the file.

        Raises:
            BadData: there is no file of them, it is not as it should be, or it lacks this image.
        """
        edges = self._proposals.get(url)
        if not edges:
            raise BadData(
                f"The file {str(self.files.proposals)!r} has no boxes for the image {url!r}.",
                hint="Fetch image_url2auto_bboxes.json.zip again.",
            )
        left, top, right, bottom = ([*map(plain, edges[start::4])] for start in range(4))
        return tuple(zip(left, top, right, bottom, strict=True))

    @property
    def proposed(self) -> Collection[str]:
        """The images of the corpus that a detector proposes boxes for; none without the file."""
        return () if self.files.proposals is None else self._proposals.keys()

    @cached_property
    def _proposals(self) -> Mapping[str, Sequence[float]]:
        """By image the edges of its boxes, one after another, as there are hundreds of thousands."""
        file = self.files.proposals
        if file is None:
            raise BadData(
                f"The folder {str(self.folder)!r} has no boxes of a detector.",
                hint="Fetch image_url2auto_bboxes.json.zip; the regions of people are `boxes=gt`.",
            )
        edges, left_out = dict[str, Sequence[float]](), 0
        for name, value in file.stream():
            url = str(name)
            for image in self.of_image(url)[:1]:
                with noting(self.problems):
                    size = image.width, image.height
                    boxes, others = read_proposals(value, size, f"The file {str(file)!r}, {url!r}")
                    edges[url] = array("d", chain.from_iterable(boxes))
                    left_out += others
        if left_out:
            self.notes.append(
                f"{many(left_out, 'proposed box has', 'proposed boxes have')} no area in the image, and so "
                f"{'is' if left_out == 1 else 'are'} left out."
            )
        return edges

    @cached_property
    def _by_chunk(self) -> Mapping[int, Sequence[Instance]]:
        chunks = defaultdict[int, list[Instance]](list)
        for instance in self.instances:
            if instance.chunk is not None:
                chunks[instance.chunk].append(instance)
        return chunks

    @cached_property
    def _by_image(self) -> Mapping[str, Sequence[Instance]]:
        images = defaultdict[str, list[Instance]](list)
        for instance in self.instances:
            images[instance.url].append(instance)
        return images
