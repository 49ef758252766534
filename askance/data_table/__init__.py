"""Rows of a table that lies somewhere: CSV, JSON lines, Parquet, Arrow, or a data set of Hugging Face.

```python
table = open_data_table("ads.csv")
for row in table.rows({"image": "path", "options": "choices"}):
    print(row.where, row["image"], as_list(row["options"]))
```

| source | what it is |
|---|---|
| `ads.csv`, `ads.tsv` | the first line names the columns |
| `ads.jsonl`, `ads.ndjson` | a JSON object a line |
| `ads.parquet`, `ads.arrow` | one file, read by pyarrow (extra `arrow`) |
| a folder | that `datasets` saved, with one split; read by pyarrow |
| `hf:owner/name` | a data set of the hub or a folder that `datasets` loads (extra `hf`) |

`hf:owner/name?split=test&config=en&revision=abc` says which split, configuration and revision. What is downloaded, or
streamed where only the first rows are wanted, lies in the cache of Hugging Face. No code of a data set is run.

Whoever wrote a table is a stranger: rows are read one after the other, within limits of lines, rows, depth and memory.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
