"""One question to the service: what goes out, how the answer is read, and whether to ask again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from pydantic import ValidationError

from kairos_client.answers.answer import Answer
from kairos_client.errors import UnexpectedAnswerError
from kairos_client.wire import body

T = TypeVar("T")
AnswerT = TypeVar("AnswerT", bound=Answer)


class Again(Enum):
    """When a question may be asked again."""

    SAFELY = "whenever it failed in passing: asked twice, it has the effect of once"
    UNTOUCHED = "only where the service surely did nothing: it was never reached, or turned away"
    NEVER = "not at all: the failure is the answer"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, and what becomes of its answer.

    Attributes:
        name: the operation, as the service's description names it.
        path: with ids percent-encoded, and the query.
        read: makes the answer of a body.
        again: when it may be repeated.
        told_by: further statuses whose body is an answer, not a problem.
        is_done_when_gone: whether, once an answer was lost, "there is no such thing" says that the
            lost request had done its work.
    """

    name: str
    method: str
    path: str
    read: Callable[[bytes], T]
    again: Again
    content: bytes | None = None
    told_by: frozenset[int] = frozenset()
    is_done_when_gone: bool = False


def fetch(name: str, path: str, answer: type[AnswerT]) -> Call[AnswerT]:
    """A question that changes nothing."""
    return Call(name, "GET", path, reading(answer), Again.SAFELY)


def ask(
    name: str,
    path: str,
    fields: Mapping[str, object],
    answer: type[AnswerT],
    *,
    method: str = "POST",
    again: Again = Again.SAFELY,
) -> Call[AnswerT]:
    """A question with a body; by default one that may be asked again."""
    return Call(name, method, path, reading(answer), again, content=body(fields))


def reading(answer: type[AnswerT]) -> Callable[[bytes], AnswerT]:
    """Makes answers of one kind of bodies."""

    def read(content: bytes) -> AnswerT:
        try:
            return answer.model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = "/".join(map(str, first["loc"]))
            raise UnexpectedAnswerError(
                f"an answer has the fields of {answer.__name__}, but {error.error_count()} are not "
                f"as they should be, first #/{place}: {first['msg'].lower()}; see what answers at "
                "this address, and of which version it is",
                code="unexpected_answer",
            ) from error

    return read


def nothing(_: bytes) -> None:
    """The answer of an operation that answers without a body."""


def text(content: bytes) -> str:
    """The answer of an operation that answers in plain text."""
    return content.decode()
