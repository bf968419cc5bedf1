"""Kernels inside kernels: compiled without what only a call from Python needs.

A kernel that Python calls has a second function around it, which takes the arguments out of Python objects. With thirty
arrays in tuples that is more code than many a kernel, and numba optimises it again in each caller. A kernel that
another one calls is therefore compiled apart, without it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def split(kernel: Any, compile_part: Callable[[], Any], folder: Path) -> None:
    """Let other kernels call a version of `kernel` that Python cannot call, made when the first of them needs it.

    Parameters
    ----------
    kernel : callable
        The compiled function, as Python calls it.
    compile_part : callable
        Makes the version for other kernels.
    folder : Path
        Where the machine code of that version is kept. The two may not share files: numba does not see a difference.
    """
    made: list[Any] = []

    def version(types: Any) -> Any:
        if getattr(kernel, "is_whole", False) or types in kernel.overloads:
            return kernel
        if not made:
            part = compile_part()
            made.append(part if Path(part._cache.cache_path).is_relative_to(folder) else kernel)
        return made[0]

    def get_call_template(args: Any, kws: Any) -> Any:
        types = kernel.fold_argument_types(args, kws)[1]
        return type(kernel).get_call_template(version(tuple(types)), args, kws)

    def get_overload(types: Any) -> Any:
        chosen = made[0] if made and types in made[0].overloads else kernel
        return type(kernel).get_overload(chosen, types)

    kernel.get_call_template = get_call_template
    kernel.get_overload = get_overload


def keep_whole(kernel: Any) -> None:
    """Let other kernels call the version that Python calls too, so that one is compiled and not two.

    Parameters
    ----------
    kernel : callable
        A compiled function.
    """
    kernel.is_whole = True
