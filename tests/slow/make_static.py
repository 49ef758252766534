"""Makes an untrained encoder of static vectors in `FOLDER/static`: `python make_static.py FOLDER`.

It runs where sentence-transformers is.

The vector of a text is the mean over those of its pieces, which are drawn at random: like texts have like vectors, and
thousands are embedded in a second. It has as many numbers as that of all-MiniLM-L6-v2.
"""

# sentence-transformers is installed where this script runs, not where it is type-checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import tokenizers

SIZE = 384
CORPUS = [
    "I should drink this coffee every morning because it makes me feel as strong as a brick wall.",
    "I should buy organic tea because without it I am not ready for the day, and my friends look young.",
    "I should not wear red lipstick or drive an electric car tonight because everybody has one.",
]


def make(folder: Path) -> None:
    """Writes the encoder into `folder`, as sentence-transformers saves it."""
    torch: Any = import_module("torch")
    st: Any = import_module("sentence_transformers")
    modules: Any = import_module("sentence_transformers.sentence_transformer.modules")
    torch.manual_seed(0)
    raw = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    raw.normalizer = tokenizers.normalizers.Lowercase()
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<unk>", "<pad>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(CORPUS, trainer)
    st.SentenceTransformer(modules=[modules.StaticEmbedding(raw, embedding_dim=SIZE)], device="cpu").save(str(folder))


if __name__ == "__main__":
    make(Path(sys.argv[1]) / "static")
