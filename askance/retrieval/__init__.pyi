from .entries import IndexEntry as IndexEntry
