"""`AnswerLikelihood`: how likely a model finds a text as the answer to what another node asks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from askance.errors import BadImage, CallError, PromptTooLong, ReplayMiss
from askance.models.likelihood import TextLikelihood, likelihood_of
from askance.nodes.answer import AnswerField, TypedInput
from askance.nodes.node import Node
from askance.nodes.result import Call, Result, Unreadable, no_answer, skipped

if TYPE_CHECKING:
    from askance.chat import ChatRequest
    from askance.models import OutputMode
    from askance.nodes.node import Chat, Form
    from askance.prompts import Prompt

In = TypeVar("In")
Out = TypeVar("Out")


class WeighingNode(Node[In, Out]):
    """Asks for log-probabilities: its prompt has the text form, and nothing in a reply is read as an answer."""

    @override
    def fields(self, subject: In) -> Sequence[AnswerField]:
        """None: nothing is written."""
        return ()

    @override
    def read_text(self, text: str, subject: In) -> Out:
        raise Unreadable("log-probabilities stand in no text")

    @override
    def _prompt_for(self, form: Form) -> Prompt:
        return super()._prompt_for("text")


class LikelihoodQuestion(TypedInput):
    """A text, and the input of the node that it would be the answer of."""

    subject: Any
    text: str


class AnswerLikelihood(WeighingNode[LikelihoodQuestion, TextLikelihood]):
    """How likely the model of another node finds a given text as its answer.

    The prompt of that node is sent in its text form, whatever form the node itself asks in: in JSON the braces and
    names around the text would be weighed with it. A model that cannot weigh a text gives no likelihood, and says why.

    Args:
        node: the other node.
        name: how this one shows up in traces and graphs.
    """

    prompt = "likelihood"
    takes = LikelihoodQuestion
    gives = TextLikelihood

    def __init__(self, node: Node[Any, Any], *, name: str = "likelihood") -> None:
        self.node = node
        super().__init__(node.model, prompt=node.prompt_name, prompts=node.prompts, name=name)

    @override
    def request(self, subject: LikelihoodQuestion, mode: OutputMode) -> ChatRequest:
        """The request that asks about `subject`, whatever the mode."""
        return self.node.request(self.node.accept(subject.subject), "paper").weighing(subject.text.strip())

    @override
    async def _ask(self, inputs: Any, chat: Chat) -> Result[TextLikelihood]:
        calls: list[Call] = []
        try:
            subject = self.accept(inputs)
            if not subject.text.strip():
                return skipped("there is no text to weigh", absent=True)
            request = self.request(subject, "paper")
            response = await chat(request, False)  # noqa: FBT003  # the signature of every such function
            calls.append(self._call(request, response))
        except (CallError, ReplayMiss, BadImage, PromptTooLong) as error:
            return no_answer(error, calls=calls)
        likelihood = likelihood_of(response)
        if likelihood is None:
            why = response.refusal or "the backend gave no log-probabilities"
            return Result(outcome="refused", reason=why, calls=tuple(calls))
        return Result(outcome="answered", value=likelihood, calls=tuple(calls))
