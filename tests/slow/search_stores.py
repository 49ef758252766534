"""Searches one index in three stores: `python search_stores.py ENCODER URL COUNT`; writes JSON, a line a step.

It runs where chromadb is. The stores are a file, LanceDB, and the Chroma server at URL, through llama-index. After each
line it waits for one on stdin, so that the server can be stopped and started between the steps:

1. the indexes are built, and searched by all queries;
2. the index in Chroma is searched by queries that are on record, and by one that is not;
3. it is opened anew, and searched by that one.
"""

# chromadb is installed where this script runs, not where it is type-checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from askance.errors import AskanceError
from askance.models import Engine
from askance.replay import MemoryStore
from askance.retrieval import Index, IndexEntry, VectorStore
from askance.retrieval.llama import LlamaVectorStore
from askance.retrieval.retriever import retriever
from tests.slow.many_statements import statements

K = 120
QUERIES = 20
RECORDS = MemoryStore()


def chroma(url: str, count: int) -> VectorStore:
    """A collection that is searched exactly: HNSW that looks at as many vectors as there are."""
    import chromadb
    from llama_index.vector_stores.chroma import ChromaVectorStore

    client = chromadb.HttpClient(host=urlsplit(url).hostname or "", port=urlsplit(url).port or 0)
    exact = {"hnsw": {"space": "cosine", "ef_search": count}}
    return LlamaVectorStore(
        ChromaVectorStore(chroma_collection=client.get_or_create_collection("ads", configuration=exact))
    )


async def found(index: Index, encoder: str, query: str, *, recorded: bool = True) -> Any:
    """The ids and scores of the hits, and the seconds that the search took; or the error."""
    engine = Engine(records=RECORDS if recorded else MemoryStore())
    searched = retriever(index, how="dense", k=K, embedder=encoder, engine=engine)
    started = time.perf_counter()
    try:
        hits = await searched.search(query)
    except AskanceError as error:
        return {"error": type(error).__name__, "message": str(error)}
    seconds = time.perf_counter() - started
    return {"ids": [hit.id for hit in hits], "scores": [hit.score for hit in hits], "seconds": seconds}


async def built(encoder: str, url: str, count: int) -> tuple[Index, dict[str, Any]]:
    """The index in Chroma, and of each store what the queries find and the seconds that the build took."""
    texts = statements(count + QUERIES)
    entries = [IndexEntry.of(text) for text in texts[:count]]
    stores: dict[str, Any] = {"file": "file", "lance": "lance", "chroma": chroma(url, count)}
    said: dict[str, Any] = {}
    index: Index | None = None
    for name, store in stores.items():
        started = time.perf_counter()
        index = await Index.build(Path(name), entries, embedder=encoder, store=store)
        seconds = time.perf_counter() - started
        own = name != "chroma"  # the others' are not recorded: they would be found on record
        hits = [await found(index, encoder, query, recorded=not own) for query in texts[count:]]
        said[name] = {"build": seconds, "hits": hits, "wrong": list(index.verify())}
    assert index is not None
    return index, said


def tell(said: Any) -> None:
    """Writes a line, and waits for one."""
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()


def main(encoder: str, url: str, count: int) -> None:
    known, fresh = statements(count + QUERIES)[count], "A statement that nobody has searched for."
    index, said = asyncio.run(built(encoder, url, count))
    tell(said)
    tell([asyncio.run(found(index, encoder, query)) for query in (known, fresh)])
    again = Index.open(index, store=chroma(url, count))
    tell([asyncio.run(found(again, encoder, query)) for query in (known, fresh)])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
