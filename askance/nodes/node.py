"""The node: one prompt, one model, one parser, and the output modes in which it asks.

A node asks in the strictest mode that its endpoint supports: a JSON Schema that the endpoint enforces, a JSON object,
or JSON that only the prompt asks for. The caller may choose the text protocol of the paper instead. If a reply cannot
be read, the node's extractor reads it, where there is one. Otherwise the model is asked once more and told what was
wrong; then the outcome is `invalid`, with the text. What is quoted of the reply in between is untrusted, and holds no
marks of chat templates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from pydantic import ValidationError
from typing_extensions import TypedDict, override

from askance.chat import Message, ResponseFormat, TextPart
from askance.errors import BadImage, CallError, PromptTooLong, ReplayMiss, UsageError
from askance.models import get_model, run_sync
from askance.nodes.answer import AnswerField, TextAnswer, faults, schema_of, text_field, text_schema
from askance.nodes.closed_set import UnreadReply
from askance.nodes.reply import final_text, json_object
from askance.nodes.result import Call, Read, Result, Unreadable, no_answer
from askance.nodes.runnable import Runnable
from askance.nodes.tracing import trace_value, traced_chat, traced_config, traced_run
from askance.prompts import Form, Prompt, PromptLibrary, neutralize

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from langchain_core.callbacks import AsyncCallbackManager
    from langchain_core.runnables import RunnableConfig

    from askance.chat import ChatRequest, ChatResponse, ImagePart, JsonObject, Outcome
    from askance.images import Image
    from askance.models import Model, ModelLike, OutputMode
    from askance.nodes.closed_set import ClosedSet, Extraction
    from askance.nodes.example import Example
    from askance.prompts.prompt import PromptTurn

    Chat = Callable[[ChatRequest, bool], Awaitable[ChatResponse]]

SCHEMA_IGNORED = "it took a JSON schema and did not hold the answer to it; the next run asks in another form."
"""What is said of an endpoint whose reply shows that it does not enforce a schema."""

In = TypeVar("In")
Out = TypeVar("Out")
Text = TypeVar("Text", bound=TextAnswer)


class NodeOptions(TypedDict, total=False):
    """What every node takes beside its model and its own options, as `Node` says."""

    prompt: str | None
    prompts: PromptLibrary | None
    name: str | None


class Node(Runnable[In, Out], ABC, Generic[In, Out]):
    """One question to a model: `ask` gives a `Result` for every input; `invoke` gives the value, or raises.

    A subclass names its prompt, the types of its input and its answer, and the fields of the JSON object that it asks
    for, each with its limits and its reader. It also says how a plain text is read.

    Args:
        model: a spec or configured name (`openai:gpt-4o`), a `Model`, a chat model of LangChain, or any `ChatModel`.
        prompt: name of the prompt to use in place of the node's own.
        prompts: where prompts are looked up; by default the overlay folder in use and the package's own.
        name: how the node shows up in traces and graphs.
    """

    prompt: str
    """Name of the node's prompt, and of the schema that is sent."""
    takes: ClassVar[type[Any]]
    """Type of the input."""
    gives: ClassVar[type[Any]]
    """Type of the answer."""
    max_tokens: ClassVar[int] = 1024
    """Most tokens of an answer where the model's settings say nothing; a model that thinks gets more on top."""
    chooses: bool = False
    """Whether the question has a closed set of answers."""
    extractor: Node[UnreadReply, Extraction] | None = None
    """Reads replies that the node cannot read, where its question has a closed set of answers; None is nobody."""

    def __init__(
        self,
        model: ModelLike,
        *,
        prompt: str | None = None,
        prompts: PromptLibrary | None = None,
        name: str | None = None,
    ) -> None:
        if isinstance(prompts, (str, Path)):  # users give a folder
            raise UsageError(
                f"{prompts!r} is no library of prompts.", hint=f"Give `PromptLibrary([{str(prompts)!r}])`."
            )
        self.model: Model = get_model(model)
        self.prompts = prompts if prompts is not None else PromptLibrary()
        self.prompt_name = prompt or self.prompt_of()
        self.name = name or self.prompt_name
        self._model_name = str(self.model.id)
        self._begin()

    def _begin(self) -> None:
        """Begins without anything that asking leaves behind, and looks the prompt up."""
        self._prompts: dict[Form, Prompt] = {}
        self._messages: dict[int, tuple[PromptTurn, Message]] = {}
        self._form: ResponseFormat | None = None
        self._output_mode: OutputMode | None = None
        self._prompt_for("text" if self.model.protocol == "paper" else "json")

    def __getstate__(self) -> dict[str, Any]:
        left = {"_prompts", "_messages", "_form", "_output_mode"}
        return {name: value for name, value in vars(self).items() if name not in left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def with_extractor(self, extractor: Node[UnreadReply, Extraction]) -> Self:
        """This node with an extractor, such as `askance.agents.extract_answer`, for replies that it cannot read.

        Raises:
            UsageError: the question has no closed set of answers.
        """
        if not self.chooses:
            raise UsageError(
                f"`{self.name}` is answered freely, so there is nothing to extract.",
                hint="Give the extractor to a node that chooses among options.",
            )
        node = copy(self)
        node.extractor = extractor
        return node

    def closed_set(self, subject: In) -> ClosedSet | None:  # noqa: ARG002  # a subclass may have one
        """The answers that the question about `subject` has; None where the answer is free."""
        return None

    def chosen(self, subject: In, places: Sequence[int]) -> Out:  # noqa: ARG002
        """The answer that chooses these places of `closed_set`, from 1.

        Raises:
            Unreadable: they are no answer.
        """
        raise Unreadable("nothing is chosen here")

    def prompt_of(self) -> str:
        """Name of the prompt that is used where the caller names none."""
        return self.prompt

    @property
    @override
    def InputType(self) -> Any:  # LangChain's name
        return Any

    @property
    @override
    def OutputType(self) -> type[Out]:
        return self.gives

    def get_output_jsonschema(self, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: ARG002  # LangChain's signature
        """JSON Schema of the value."""
        from pydantic import TypeAdapter

        return TypeAdapter(self.gives).json_schema()

    def accept(self, inputs: Any) -> In:
        """The typed input for `inputs`, which is such an input already or a mapping of its fields.

        Raises:
            UsageError: it is neither.
        """
        if isinstance(inputs, self.takes):
            return inputs
        try:
            return self.takes(**inputs)
        except (TypeError, ValidationError) as error:
            raise UsageError(
                f"{inputs!r} is no {self.takes.__name__}: {faults(error)}.",
                hint="Give one, or a mapping with its fields.",
            ) from error

    @abstractmethod
    def fields(self, subject: In) -> Sequence[AnswerField]:
        """The fields of the JSON object that is wanted for `subject`, in their order."""

    def schema(self, subject: In) -> JsonObject:
        """JSON Schema of the answer wanted for `subject`, as it is sent."""
        return schema_of(self.fields(subject))

    def answer(self, subject: In, **values: Any) -> Out:  # noqa: ARG002  # a subclass may need it
        """The answer with these values in its fields."""
        return self.gives(**values)

    def read_json(self, data: Mapping[str, Any], subject: In) -> Out:
        """The answer in a JSON reply.

        Raises:
            Unreadable: the reply is not what was asked for.
        """
        values = {field.fills: field.read(data, field.name) for field in self.fields(subject) if field.read}
        return self.answer(subject, **values)

    @abstractmethod
    def read_text(self, text: str, subject: In) -> Out:
        """The answer in a reply to the paper's text protocol.

        Raises:
            Unreadable: the reply is not what was asked for.
        """

    def read_reply(self, text: str, subject: In) -> Read[Out]:
        """The answer in a reply to the paper's text protocol, and which rung of the ladder read it.

        Raises:
            Unreadable: the reply is not what was asked for.
        """
        return Read(self.read_text(text, subject))

    def variables(self, subject: In) -> Mapping[str, Any]:  # noqa: ARG002  # a subclass may need it
        """Values for the prompt's variables."""
        return {}

    def pictures(self, subject: In) -> tuple[Image, ...]:  # noqa: ARG002
        """Pictures that stand before the text of the first user turn; behind examples, of the last one."""
        return ()

    def picture_parts(self, subject: In) -> tuple[ImagePart, ...]:
        """The pictures as the model is shown them; a subclass may show views of them."""
        return tuple(self.model.image(picture) for picture in self.pictures(subject))

    def examples(self, subject: In) -> tuple[Example, ...]:  # noqa: ARG002
        """Questions with their answers that are shown before `subject` is asked about."""
        return ()

    def example_variables(self, example: Example) -> Mapping[str, Any]:
        """Values for the prompt's variables in an example."""
        return example.variables

    def unasked(self, subject: In) -> Result[Out] | None:  # noqa: ARG002
        """The result for an input about which nothing can be asked; None for any other input."""
        return None

    async def ask(self, inputs: Any, config: RunnableConfig | None = None) -> Result[Out]:
        """The outcome for one input; each error that is of this input alone becomes a result with its reason.

        Args:
            inputs: the node's input, or anything that `accept` takes.
            config: a LangChain configuration whose handlers listen; None takes the straight path.
        """
        if config is None:
            return await self._ask(inputs, self._chat)
        return await self._traced_ask(inputs, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Out:  # noqa: A002
        """The value for one input.

        Raises:
            CallError: of the class that stands for the outcome, where there is no answer.
        """
        return (await self.ask(input, traced_config(config, self.model.mode))).unwrap()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Out:  # noqa: A002
        """As `ainvoke`, from anywhere: scripts, threads, notebooks."""
        return run_sync(self.ainvoke(input, config))

    def __call__(self, inputs: Any) -> Out:
        """As `invoke`."""
        return self.invoke(inputs)

    def request(self, subject: In, mode: OutputMode) -> ChatRequest:
        """The request that asks about `subject` in that output mode."""
        prompt, examples = self._prompt_for("text" if mode == "paper" else "json"), self.examples(subject)
        answered = [self.example_variables(example) for example in examples]
        turns = prompt.render(examples=answered, **self.variables(subject))
        messages = [self._message(place, turn) for place, turn in enumerate(turns)]
        last = len(turns) - 1
        own = last if examples else next(place for place, turn in enumerate(turns) if turn.role == "user")
        shown = {
            last - 2 * len(examples) + 2 * n: (self.model.image(each.image),)
            for n, each in enumerate(examples)
            if each.image
        }
        for place, parts in {**shown, own: self.picture_parts(subject)}.items():
            if parts:
                messages[place] = Message("user", (*parts, *messages[place].parts))
        return self.model.request(messages, response=self._response_format(subject, mode), max_tokens=self.max_tokens)

    def _message(self, place: int, turn: PromptTurn) -> Message:
        """A turn as a message; an unchanged turn gives the same object, so that its JSON is made only once."""
        turn_before, message = self._messages.get(place, (None, None))
        if message is None or turn is not turn_before:
            message = Message(turn.role, (TextPart(turn.text),))
            self._messages[place] = turn, message
        return message

    def _response_format(self, subject: In, mode: OutputMode) -> ResponseFormat | None:
        """The form of the answer; an unchanged form is the same object, so that its JSON is made only once."""
        if mode == "json_object":
            return ResponseFormat("json_object")
        if mode != "json_schema":
            return None
        schema, form = self.schema(subject), self._form
        if form is None or form.schema != schema:
            form = self._form = ResponseFormat("json_schema", name=self.prompt, schema=schema)
        return form

    @property
    def prompts_in_use(self) -> tuple[Prompt, ...]:
        """The prompts that the node has looked up so far, and those of its extractor."""
        own = tuple(self._prompts.values())
        return own if self.extractor is None else (*own, *self.extractor.prompts_in_use)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that are asked, each once; the node's own stands first."""
        own = (self.model,) if self.extractor is None else (self.model, self.extractor.model)
        return tuple(dict.fromkeys(own))

    @property
    def settings(self) -> JsonObject:
        """What decides the answers beside the model and the prompts, where the node has such settings."""
        return {}

    @property
    def most_calls(self) -> int:
        """Calls that one question takes at most; 1 where it is not known to take more."""
        return 1

    def _prompt_for(self, form: Form) -> Prompt:
        if form not in self._prompts:
            self._prompts[form] = self.prompts.find(self.prompt_name, form=form, family=self.model.family)
        return self._prompts[form]

    def _chat(self, request: ChatRequest, again: bool) -> Awaitable[ChatResponse]:  # noqa: FBT001
        return self.model.generate(request, again=again)

    async def _traced_ask(self, inputs: Any, config: RunnableConfig) -> Result[Out]:
        async def work(models: AsyncCallbackManager) -> Result[Out]:
            async def chat(request: ChatRequest, again: bool) -> ChatResponse:  # noqa: FBT001
                return await traced_chat(
                    request, lambda each: self._chat(each, again), manager=models, name=str(self.model.id)
                )

            return await self._ask(inputs, chat)

        return await traced_run(self.get_name(), config, inputs={"input": trace_value(inputs)}, work=work)

    async def _ask(self, inputs: Any, chat: Chat) -> Result[Out]:
        calls: list[Call] = []
        mode: OutputMode | None = self._output_mode
        try:
            subject = self.accept(inputs)
            unasked = self.unasked(subject)
            if unasked is not None:
                return unasked
            if mode is None:
                mode = self._output_mode = await self.model.output_mode()
            result = await self._converse(subject, mode, chat=chat, calls=calls, again=False)
            if result.outcome == "invalid" and self.model.asks_again("invalid") and _any_replayed(calls):
                calls.clear()
                result = await self._converse(subject, mode, chat=chat, calls=calls, again=True)
        except (CallError, ReplayMiss, BadImage, PromptTooLong) as error:
            return no_answer(error, calls=calls, output_mode=mode)
        return result

    async def _converse(
        self, subject: In, mode: OutputMode, *, chat: Chat, calls: list[Call], again: bool
    ) -> Result[Out]:
        """Asks; where the reply cannot be read, asks once more and says what was wrong."""
        request = self.request(subject, mode)
        for last in (False, True):
            response = await chat(request, again)
            calls.append(self._call(request, response))
            if response.outcome != "answered":
                return unanswered(response, mode, calls)
            try:
                value, rung = self._read(response.text, subject, mode)
            except Unreadable as error:
                if mode == "json_schema" and not response.meta.replayed:
                    self._notice(response.text, subject)
                extracted = await self._extracted(response.text, subject, calls)
                if extracted is not None:
                    return replace(extracted, output_mode=mode)
                if last:
                    return Result(
                        outcome="invalid", reason=str(error), raw=response.text, calls=tuple(calls), output_mode=mode
                    )
                request = self._asked_again(request, response.text, str(error))
            else:
                return Result(outcome="answered", value=value, calls=tuple(calls), output_mode=mode, rung=rung)
        raise AssertionError  # pragma: no cover  # the last round always returns

    async def _extracted(self, reply: str, subject: In, calls: list[Call]) -> Result[Out] | None:
        """What the extractor reads in a reply; None where there is no extractor, or it reads nothing.

        A call of the extractor that fails is the outcome: another try may read the reply.
        """
        choices = None if self.extractor is None or not final_text(reply).strip() else self.closed_set(subject)
        if self.extractor is None or choices is None:
            return None
        extracted = await self.extractor.ask(UnreadReply(reply=reply, choices=choices))
        calls += extracted.calls
        if extracted.outcome == "failed":
            return Result(
                outcome="failed",
                reason=extracted.reason,
                error=extracted.error,
                raw=reply,
                calls=tuple(calls),
                failure=extracted.failure,
            )
        if extracted.value is None or not extracted.value.places:
            return None
        with suppress(Unreadable):
            value = self.chosen(subject, extracted.value.places)
            return Result(outcome="answered", value=value, calls=tuple(calls), rung="extracted")
        return None

    def _call(self, request: ChatRequest, response: ChatResponse) -> Call:
        """What is kept of a call; one that was cut off while the model thought is noted in the endpoint's record."""
        if response.outcome == "truncated" and response.thought and not response.meta.replayed:
            self.model.notice("it thinks before it answers; the next run leaves it room for that.", thinks=True)
        return Call(
            key=response.meta.key or request.key,
            model=self._model_name,
            kind=request.kind,
            usage=response.usage,
            cost=None if response.meta.replayed else self.model.cost(response.usage),
            meta=response.meta,
        )

    def _notice(self, reply: str, subject: In) -> None:
        """Notes in the model's endpoint record that the endpoint does not enforce a schema, where a reply shows it."""
        fields: Mapping[str, Any] = {}
        names = self._names(subject)
        with suppress(Unreadable):
            fields = json_object(reply, names)
        if not set(names) <= set(fields):
            self.model.notice(SCHEMA_IGNORED, schema="ignored")

    def _read(self, text: str, subject: In, mode: OutputMode) -> Read[Out]:
        if mode == "paper":
            return self.read_reply(_spoken(text), subject)
        try:
            data = json_object(text, self._names(subject))
        except Unreadable:
            _spoken(text)
            raise
        return Read(self.read_json(data, subject), "schema")

    def _names(self, subject: In) -> list[str]:
        return [field.name for field in self.fields(subject)]

    def _asked_again(self, request: ChatRequest, reply: str, error: str) -> ChatRequest:
        form = "text" if self._output_mode == "paper" else "json"
        quoted = neutralize(error)  # it may repeat a part of the reply
        turns = self.prompts.find("reask", form=form, family=self.model.family).render(error=quoted)
        complaint = tuple(Message(turn.role, (TextPart(turn.text),)) for turn in turns)
        answer = Message("assistant", (TextPart(neutralize(reply)),))
        return replace(request, messages=(*request.messages, answer, *complaint))


class TextNode(Node[In, Text]):
    """A node whose answer is one text: in a field of the JSON object, or the whole of a plain reply."""

    field: ClassVar[str]
    """Name of the text in the JSON object."""
    labels: ClassVar[tuple[str, ...]] = ()
    """The texts that there are; none leaves the answer free."""

    @override
    def fields(self, subject: In) -> Sequence[AnswerField]:
        return (AnswerField(self.field, text_schema(least=1, among=self.labels)),)

    @override
    def read_json(self, data: Mapping[str, Any], subject: In) -> Text:
        return self.read_text(text_field(data, self.field), subject)

    @override
    def read_text(self, text: str, subject: In) -> Text:
        return self.gives(text=text.strip())


def _spoken(reply: str) -> str:
    """What a reply says after its thinking.

    Raises:
        Unreadable: it says nothing.
    """
    said = final_text(reply)
    if not said.strip():
        raise Unreadable("the reply is empty")
    return said


def _any_replayed(calls: Sequence[Call]) -> bool:
    return any(call.meta.replayed for call in calls)


def unanswered(response: ChatResponse, mode: OutputMode | None, calls: Sequence[Call]) -> Result[Any]:
    """The result for a response that is no answer: it was refused, filtered or cut off."""
    reasons: dict[Outcome, str] = {
        "refused": f"the model declined: {response.refusal}" if response.refusal else "the model declined",
        "filtered": "a content filter of the endpoint stopped the answer",
        "truncated": "the answer was cut off at the token limit; raise `max_tokens`",
    }
    outcome = response.outcome
    return Result(outcome=outcome, reason=reasons[outcome], raw=response.text, calls=tuple(calls), output_mode=mode)
