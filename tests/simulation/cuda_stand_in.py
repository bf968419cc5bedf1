"""NVIDIA's driver, of Python: memory is the CPU's, and threads are played one after the other by the CPU's kernels."""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankloop.simulation import cuda

_ASKED = {"MULTIPROCESSOR_COUNT": 2, "MAX_THREADS_PER_MULTIPROCESSOR": 64, "COMPUTE_CAPABILITY_MAJOR": 9}


class Driver(ModuleType):
    """What `cuda.Device` calls. `free` are the bytes that are free, `held` what is allocated."""

    def __init__(self) -> None:
        super().__init__("cuda.bindings.driver")
        self.free, self.held, self.programs = 1 << 40, {}, []  # type: ignore[var-annotated]
        self.launches = 0
        names = {f"CU_DEVICE_ATTRIBUTE_{name}": name for name in (*_ASKED, "COMPUTE_CAPABILITY_MINOR")}
        self.CUdevice_attribute = SimpleNamespace(**names)
        needs = {f"CU_FUNC_ATTRIBUTE_{name}": name for name in ("LOCAL_SIZE_BYTES", "NUM_REGS")}
        self.CUfunction_attribute = SimpleNamespace(**needs)

    def __getattr__(self, name: str) -> Any:
        if name in ("cuInit", "cuCtxSetCurrent", "cuCtxSynchronize"):
            return lambda *arguments: (0,)
        if name in ("cuDeviceGet", "cuDevicePrimaryCtxRetain"):
            return lambda *arguments: (0, arguments[0])
        raise AttributeError(name)

    def cuDeviceGetAttribute(self, name: str, device: int) -> Any:
        return 0, _ASKED.get(name, 0)

    def cuMemGetInfo(self) -> Any:
        return 0, self.free, self.free

    def cuMemAlloc(self, size: int) -> Any:
        memory = ctypes.create_string_buffer(size)
        self.held[ctypes.addressof(memory)] = memory
        return 0, ctypes.addressof(memory)

    def cuMemFree(self, address: int) -> Any:
        del self.held[address]
        return (0,)

    def cuMemcpyHtoD(self, to: int, source: int, size: int) -> Any:
        assert size <= len(self.held[to])
        ctypes.memmove(to, source, size)
        return (0,)

    def cuMemcpyDtoH(self, to: int, source: int, size: int) -> Any:
        assert size <= len(self.held[source])
        ctypes.memmove(to, source, size)
        return (0,)

    def cuModuleLoadData(self, code: bytes) -> Any:
        return 0, int(code.rstrip(b"\0"))

    def cuModuleGetFunction(self, module: int, name: bytes) -> Any:
        return 0, module

    def cuFuncGetAttribute(self, name: str, function: int) -> Any:
        return 0, 100

    def cuGetErrorString(self, error: int) -> Any:
        return 0, b"out of order"

    def cuLaunchKernel(self, function: int, *config: Any) -> Any:
        blocks, threads, (values, kinds) = config[0], config[3], config[-2]
        assert set(kinds) == {ctypes.c_int64}
        program, left = self.programs[function], list(values[1:])
        arrays = []
        for dtype, axes in program.arguments[1:]:
            (_, _, size, itemsize, address), left = left[:5], left[5:]
            shape, strides, left = left[:axes], left[axes : 2 * axes], left[2 * axes :]
            assert (itemsize, int(np.prod(shape))) == (dtype.itemsize, size)
            assert size * itemsize <= len(self.held[address])
            arrays.append(np.ndarray(shape, dtype, self.held[address], strides=strides))
        assert not left
        thread = SimpleNamespace(grid=lambda axes: self.thread, local=SimpleNamespace(array=np.empty))
        loop = program.function(thread)
        loop.__globals__["next_word"] = cuda.next_word.plain  # type: ignore[attr-defined]
        for self.thread in range(blocks * threads):
            loop(values[0], *arrays)
        self.launches += 1
        return (0,)


def installed(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Put the driver where it is looked for; the code of a program is its number."""
    driver = Driver()
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)

    def ptx(program: cuda.Program, cc: tuple[int, int]) -> tuple[str, str]:
        assert cc == (9, 0)
        driver.programs.append(program)
        return str(len(driver.programs) - 1), "many"

    monkeypatch.setattr(cuda.Program, "ptx", ptx)
    return driver
