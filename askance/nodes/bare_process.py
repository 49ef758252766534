"""Imported before any node, it makes the nodes of this process do without LangChain: for workers of a command."""

from __future__ import annotations

from askance.nodes.runnable import leave_langchain_out

leave_langchain_out()
