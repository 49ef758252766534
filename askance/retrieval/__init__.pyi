from .bm25 import Bm25 as Bm25
from .bm25 import Bm25Settings as Bm25Settings
from .entries import IndexEntry as IndexEntry
