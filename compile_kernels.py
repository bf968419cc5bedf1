"""Compile all kernels into libraries that need no compiler at run time: `python -m compile_kernels`, or `make kernels`.

`kernels.txt` lists the kernels and the kinds of their arguments. numba compiles each to LLVM that is not yet optimised;
all are linked into one module, which is optimised and written as machine code for each processor.
`rankloop.kernels.library` says how a kernel in it is called. The wheel is built with this (setup.py). numba and a
linker are needed here only.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import functools
import hashlib
import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build/kernels"
LIST = ROOT / "kernels.txt"
VERSION = "2"  # of how a kernel is compiled and wrapped, for what is kept in BUILD
X86 = "x86_64-unknown-linux-gnu"
ARM = "aarch64-unknown-linux-gnu"
PROCESSORS = {"x86-64-v3": X86, "x86-64-v2": X86, "aarch64": ARM}
# numba optimises nothing and asks nothing about the machine that it runs on.
SETTINGS = {
    "NUMBA_OPT": "0",
    "NUMBA_CPU_NAME": "x86-64-v2",
    "NUMBA_CPU_FEATURES": "",
    "RANKLOOP_KERNELS": "numba",
    "NUMBA_DISABLE_JIT": "0",
}


if __name__ == "__main__" and any(os.environ.get(name) != value for name, value in SETTINGS.items()):
    # Behind ours those of a build that pip isolates: numba is there.
    _PATHS = {"PYTHONPATH": os.pathsep.join([f"{ROOT / 'src'}", f"{ROOT}", os.environ.get("PYTHONPATH", "")])}
    os.execve(
        sys.executable,
        [sys.executable, "-m", "compile_kernels", *sys.argv[1:]],
        os.environ | SETTINGS | _PATHS,
    )

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.np.numpy_support import as_dtype, from_dtype

from rankloop.extras import write_whole
from rankloop.kernels import library, numba_compiler


class Called(NamedTuple):
    """A kernel, and what it was called with."""

    kernel: Any
    kind: str
    types: tuple[Any, ...]


def listed() -> list[Called]:
    """The kernels in kernels.txt."""
    found = []
    for line in LIST.read_text().splitlines():
        name, _, kind = line.partition(" ")
        module, _, function = name.rpartition(".")
        kernel = getattr(importlib.import_module(module), function)
        found.append(Called(kernel, kind, tuple(map(_type, library.parsed(kind).parts))))
    return found


def _type(part: Any) -> Any:
    # What numba calls a part of a kind.
    if isinstance(part, str):
        scalars = {
            "n": types.none,
            "i": types.int64,
            "u": types.uint64,
            "f": types.float64,
            "b": types.boolean,
        }
        if len(part) == 1:
            return scalars[part]
        return types.Array(from_dtype(np.dtype(part[0])), int(part[1]), part[2])
    return types.BaseTuple.from_types([_type(inner) for inner in part.parts], part.make)


def kind_of_type(kind: Any) -> str:
    """What `library.kind_of` says of values of a type of numba's."""
    if isinstance(kind, types.Array):
        return f"{as_dtype(kind.dtype).char}{kind.ndim}{kind.layout}"
    if isinstance(kind, types.BaseTuple):
        made = getattr(kind, "instance_class", None)
        name = "" if made is None else f"{made.__module__}:{made.__qualname__}"
        return f"{name}({','.join(map(kind_of_type, kind.types))})"
    if isinstance(kind, types.Boolean):
        return "b"
    if isinstance(kind, types.Integer):
        return "i" if kind.signed else "u"
    if kind == types.float64:
        return "f"
    if kind == types.none:
        return "n"
    raise TypeError(f"a kernel returns {kind}, which the library cannot hand over")


def compiled(called: Called) -> tuple[Any, str]:
    """A kernel with its wrapper, as a module of LLVM that is not optimised; and what kind it returns."""
    kernel = called.kernel.compiled
    kernel.compile(called.types)
    result = kernel.overloads[called.types]
    module = llvm.parse_assembly(str(_wrapper(result.target_context, result, symbol(called))))
    module.link_in(result.library._get_module_for_linking(), preserve=True)
    return module, kind_of_type(result.signature.return_type)


def symbol(called: Called) -> str:
    """The name of a kernel in the library."""
    return "rankloop_" + hashlib.sha256(f"{called.kernel.name} {called.kind}".encode()).hexdigest()[:16]


def _wrapper(context: Any, result: Any, name: str) -> Any:
    # Reads the arguments from words, calls the kernel, writes the status and what it returns behind them.
    word = ir.IntType(64)
    module = context.codegen()._create_empty_module(name)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [word.as_pointer()]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    (words,) = function.args
    signature = result.signature
    packer = context.get_arg_packer(signature.args)

    def place(k: int) -> Any:
        return builder.gep(words, [ir.Constant(word, k)])

    def read(k: int, kind: Any) -> Any:
        value = builder.load(place(k))
        if isinstance(kind, ir.PointerType):
            return builder.inttoptr(value, kind)
        if isinstance(kind, ir.DoubleType):
            return builder.bitcast(value, kind)
        return value if kind == word else builder.trunc(value, kind)

    def write(k: int, value: Any) -> None:
        kind = value.type
        if isinstance(kind, ir.PointerType):
            value = builder.ptrtoint(value, word)
        elif isinstance(kind, ir.DoubleType):
            value = builder.bitcast(value, word)
        elif kind != word:
            value = builder.zext(value, word)
        builder.store(value, place(k))

    flat = [read(k, kind) for k, kind in enumerate(packer.argument_types)]
    arguments = packer.from_arguments(builder, flat)
    kernel = context.declare_function(module, result.fndesc)
    status, value = context.call_conv.call_function(
        builder, kernel, signature.return_type, signature.args, arguments
    )
    write(len(flat), builder.zext(status.is_error, word))
    returned = context.get_arg_packer((signature.return_type,))
    leaves = returned.as_arguments(builder, [value])
    for k, leaf in enumerate(leaves):
        write(len(flat) + 1 + k, leaf)
    builder.ret_void()
    return module


# numba's runtime, as far as kernels that allocate need it: an owner of memory is a count of holders and an address.
RUNTIME = """
declare ptr @malloc(i64)
declare void @free(ptr)
define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %wide = zext i32 %align to i64
  %more = add i64 %wide, 64
  %all = add i64 %size, %more
  %owner = call ptr @malloc(i64 %all)
  %none = icmp eq ptr %owner, null
  br i1 %none, label %failed, label %made
failed:
  ret ptr null
made:
  %start = getelementptr i8, ptr %owner, i64 64
  %address = ptrtoint ptr %start to i64
  %below = add i64 %wide, -1
  %reach = add i64 %address, %below
  %mask = sub i64 0, %wide
  %begin = and i64 %reach, %mask
  %data = inttoptr i64 %begin to ptr
  store i64 1, ptr %owner
  %field = getelementptr i64, ptr %owner, i64 3
  store ptr %data, ptr %field
  %last = getelementptr i64, ptr %owner, i64 4
  store i64 %size, ptr %last
  ret ptr %owner
}
define ptr @NRT_MemInfo_alloc_safe_aligned(i64 %size, i32 %align) {
  %owner = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align)
  ret ptr %owner
}
define ptr @NRT_MemInfo_alloc(i64 %size) {
  %owner = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %owner
}
define ptr @NRT_Allocate(i64 %size) {
  %memory = call ptr @malloc(i64 %size)
  ret ptr %memory
}
define void @NRT_Free(ptr %memory) {
  call void @free(ptr %memory)
  ret void
}
define void @NRT_MemInfo_call_dtor(ptr %owner) {
  call void @free(ptr %owner)
  ret void
}
"""


def linked(group: list[Called]) -> tuple[bytes, list[str]]:
    """These kernels and the runtime in one module, which shows nothing but the kernels; and what they return."""
    whole, kinds = llvm.parse_assembly(RUNTIME), []
    for one in group:
        try:
            module, returned = compiled(one)
        except Exception as error:  # of numba's, of many kinds
            name = f"{one.kernel.name} {one.kind}"
            raise SystemExit(
                f"{name} cannot be compiled, correct or remove its line of {LIST.name}: {error}"
            ) from error
        whole.link_in(module)
        kinds.append(returned)
    for function in whole.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name.startswith("rankloop_") else "internal"
    for variable in whole.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    return bytes(whole.as_bitcode()), kinds


def machine_code(bitcode: bytes, processor: str) -> bytes:
    """Optimised code for a processor, as an object file."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = PROCESSORS[processor]
    module = llvm.parse_bitcode(bitcode)
    module.triple = triple
    cpu = "generic" if processor == "aarch64" else processor
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features="", opt=3, reloc="pic", codemodel="default"
    )
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    builder.getModulePassManager().run(module, builder)
    counting = llvm.create_new_module_pass_manager()
    counting.add_refprune_pass()  # numba's own: holders of an array that are counted up and down again
    counting.run(module, builder)
    module.verify()
    return bytes(machine.emit_object(module))


def _stop_at_llvm() -> None:
    """Let numba neither optimise what it compiles nor make machine code of it, which would take half of the time."""

    def dispatcher(kernel: Any) -> Any:
        options = kernel.targetoptions | {"cache": False, "no_cpython_wrapper": True}
        return numba.njit(**options)(kernel.py_func)

    def executable(_context: Any, code: Any, *_: Any) -> Any:
        code._ensure_finalized()
        return [].append  # numba tells functions apart by it, and nobody calls it

    def finalized(code: Any) -> None:
        code._finalized = True

    numba_compiler.dispatcher = dispatcher
    rtsys.initialize(cpu_target.target_context)  # numba's runtime is machine code
    CPUContext.get_executable = executable
    JITCodeLibrary._optimize_final_module = lambda _: None
    JITCodeLibrary._finalize_final_module = finalized


def _group(name: str, processors: list[str]) -> list[str]:
    # In a process of its own: object files with the kernels of a module, unless they are there; the kinds they return.
    warnings.simplefilter("ignore")
    path = _path(name)
    if not path.exists():
        bitcode, returned = linked(GROUPS[name])
        write_whole(path, _writes(json.dumps(returned).encode() + b"\n" + bitcode))
    returned, _, bitcode = path.read_bytes().partition(b"\n")
    for processor in processors:
        code = Path(f"{path}.{processor}.o")
        if not code.exists():
            write_whole(code, _writes(machine_code(bitcode, processor)))
    return list(json.loads(returned))


def _writes(content: bytes) -> Callable[[Path], object]:
    return lambda part: part.write_bytes(content)


GROUPS: dict[str, list[Called]] = {}  # by the module that they are written in


@functools.cache
def _path(name: str) -> Path:
    """What the files of a group begin with: it depends on its own module, and on those that this imports."""
    group = GROUPS[name]
    sources = _imported(Path(group[0].kernel.py_func.__code__.co_filename)) | {
        ROOT / "src/rankloop/kernels/llvm.py"
    }
    digest = hashlib.sha256(f"{VERSION} {numba.__version__} {[one.kind for one in group]}".encode())
    for one in group:
        digest.update(one.kernel.name.encode())
    for source in sorted(sources):
        digest.update(library.code(source))
    return BUILD / f"{name}-{digest.hexdigest()[:16]}"


@functools.cache
def _imported(source: Path) -> frozenset[Path]:
    found, new = {source}, [source]
    while new:
        for node in ast.walk(ast.parse(new.pop().read_text())):
            module = getattr(node, "module", None) or ""
            if isinstance(node, ast.ImportFrom) and module.startswith("rankloop."):
                names = [module, *(f"{module}.{one.name}" for one in node.names)]
                for name in names:
                    path = ROOT / "src" / f"{name.replace('.', '/')}.py"
                    if path.exists() and path not in found and path.name != "jit.py":
                        found.add(path)
                        new.append(path)
    return frozenset(found)


def build(target: Path, processors: list[str], jobs: int) -> None:
    """Write the libraries for these processors, and their index, into the folder `target`, unless they are there."""
    version = library.fingerprint()
    made_of = hashlib.sha256(LIST.read_bytes() + Path(__file__).read_bytes()).hexdigest()
    index = target / f"{version}.json"
    with suppress(FileNotFoundError, ValueError, KeyError):
        known = json.loads(index.read_text())
        if known["made_of"] == made_of and set(processors) <= set(known["sha256"]):
            return
    begun = time.perf_counter()
    _stop_at_llvm()
    for one in listed():
        GROUPS.setdefault(one.kernel.py_func.__module__, []).append(one)
    BUILD.mkdir(parents=True, exist_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    kernels: dict[str, list[str]] = {}
    # Forked before anything is compiled: nothing has to be imported again.
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        groups = pool.map(functools.partial(_group, processors=processors), GROUPS)
        for number, (name, returned) in enumerate(zip(GROUPS, groups, strict=True)):
            for one, kind in zip(GROUPS[name], returned, strict=True):
                kernels[f"{one.kernel.name} {one.kind}"] = [symbol(one), kind]
            _tell(f"{number + 1} of {len(GROUPS)} modules compiled, {name}")
    digests = {processor: _link(target, version, processor) for processor in processors}
    known = {
        "made_of": made_of,
        "code": library.fingerprint(library.code),
        "sha256": digests,
        "kernels": kernels,
    }
    write_whole(index, lambda part: part.write_text(json.dumps(known, indent=0, sort_keys=True)))
    used = (version, *(_path(name).name for name in GROUPS))
    for old in (*target.iterdir(), *BUILD.iterdir()):
        if not old.name.startswith(used):
            old.unlink()
    seconds = time.perf_counter() - begun
    _tell("")
    print(f"{len(kernels)} kernels compiled for {', '.join(processors)} in {seconds:.0f} s")


def _tell(line: str) -> None:
    # Where somebody looks: how far it is.
    if sys.stderr.isatty():
        print(f"\r{line[:100]:<100}\r", end="", file=sys.stderr, flush=True)


def _link(target: Path, version: str, processor: str) -> str:
    # The library for a processor; returns its digest.
    built = target / f"{version}-{processor}.so"
    command = [_linker(processor), "-shared", "--strip-all", "-o"]
    objects = [f"{_path(name)}.{processor}.o" for name in GROUPS]
    # In one step: who has the old file open goes on with that, and would crash if its bytes changed.
    write_whole(built, lambda part: subprocess.run([*command, str(part), *objects], check=True))
    if PROCESSORS[processor].startswith(platform.machine()):
        ctypes.CDLL(str(built), mode=os.RTLD_NOW)  # nothing that it needs may be missing
    return hashlib.sha256(built.read_bytes()).hexdigest()


def _linker(processor: str) -> str:
    """The program that links for this processor."""
    machine = PROCESSORS[processor].partition("-")[0]
    names = (["ld"] if machine == platform.machine() else []) + [f"{machine}-linux-gnu-ld", "ld.lld"]
    for name in names:
        if shutil.which(name):
            return name
    raise SystemExit(
        f"linking for {machine} needs one of {', '.join(names)} (Debian: apt install binutils-{machine}-linux-gnu)"
    )


def main() -> None:
    """What the command does."""
    parser = argparse.ArgumentParser(
        description="Compile all kernels into libraries that need no compiler at run time."
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    here = [name for name, triple in PROCESSORS.items() if triple.startswith(platform.machine())]
    parser.add_argument("--processors", default=",".join(here), help=f"of {', '.join(PROCESSORS)}")
    arguments = parser.parse_args()
    processors = arguments.processors.split(",")
    if unknown := set(processors) - set(PROCESSORS):
        parser.error(f"--processors must be among {', '.join(PROCESSORS)}, got {', '.join(unknown)}")
    for processor in processors:
        _linker(processor)
    build(ROOT / "src/rankloop/kernels/compiled", processors, arguments.jobs)


if __name__ == "__main__":
    main()
