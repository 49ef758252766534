"""Image tools as tools that an agent of LangChain can call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from askance.images import Image
from askance.prompts import fence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.runnables import Runnable
    from langchain_core.tools import BaseTool


def tool_of(node: Runnable[Any, Any], images: Mapping[str, Image] | Image) -> BaseTool:
    """A tool named after `node`; an agent names one of `images`, or nothing where there is only one."""
    from langchain_core.tools import StructuredTool
    from pydantic import create_model

    description = (type(node).__doc__ or "").strip().split("\n")[0]
    if isinstance(images, Image):
        only = images

        async def ask() -> str:
            return _quoted(await node.ainvoke(only))

        def ask_sync() -> str:
            return _quoted(node.invoke(only))

        return StructuredTool.from_function(ask_sync, coroutine=ask, name=node.get_name(), description=description)
    known = dict(images)

    async def ask_about(image: str) -> str:
        return _quoted(await node.ainvoke(known[image]))

    def ask_about_sync(image: str) -> str:
        return _quoted(node.invoke(known[image]))

    arguments = create_model("Picture", image=(cast("Any", Literal)[tuple(known)], ...))
    return StructuredTool.from_function(
        ask_about_sync, coroutine=ask_about, name=node.get_name(), description=description, args_schema=arguments
    )


def _quoted(value: object) -> str:
    """What was read off a picture, behind a fence: an agent must not take it for an instruction."""
    return fence(str(value), "from the image")
