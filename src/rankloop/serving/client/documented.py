"""A method that says about itself what the function says that it was made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def documented(method: Method, build: Callable[..., Any], *, owner: str) -> Method:
    """Give a method of the class named `owner` the name, the docstring and the arguments of `build`, after `self`."""
    signature = inspect.signature(build)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    answer = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
    shown = signature.replace(parameters=[this, *signature.parameters.values()], return_annotation=answer)
    method.__name__ = build.__name__
    method.__qualname__ = f"{owner}.{build.__name__}"
    method.__doc__ = build.__doc__
    vars(method)["__signature__"] = shown
    return method
