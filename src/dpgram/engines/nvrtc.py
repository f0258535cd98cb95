"""CUDA C++ compiled at run time by NVRTC, which every CUDA build of PyTorch brings along; no toolkit is needed."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpgram.engines.pytorch import Device, torch

MOST_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
Argument = Any  # a tensor on the device, an int (64 bits) or a float (double)


class KernelError(Exception):
    """A kernel could not be compiled, loaded or started. Says nothing about rows: compilation sees none."""


class Kernel:
    """One compiled function on one device, started on PyTorch's current stream."""

    def __init__(self, source: str, name: str, defines: dict[str, object], device: Device):
        self._device, self._shared = device, 0
        with torch.cuda.device(device):
            torch.empty(1, device=device)  # makes the device's context current
            major, minor = torch.cuda.get_device_capability(device)
            options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17", "--fmad=false"]
            binary = _compiled(source, name, [*options, *(f"-D{key}={value}" for key, value in defines.items())])
            self._driver = _library("libcuda.so.1", "nvcuda.dll")
            self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
            self._ask("cuModuleLoadData", ctypes.byref(self._module), binary)
            self._ask("cuModuleGetFunction", ctypes.byref(self._function), self._module, name.encode())

    def __call__(self, blocks: int, threads: int, *arguments: Argument, shared: int = 0) -> None:
        """Start it, with so many bytes of shared memory besides its own; the call does not wait for the end."""
        values = [_as_c(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        with torch.cuda.device(self._device):
            if shared > self._shared:
                self._ask("cuFuncSetAttribute", self._function, MOST_DYNAMIC_SHARED, shared)
                self._shared = shared
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            self._ask("cuLaunchKernel", self._function, blocks, 1, 1, threads, 1, 1, shared, stream, pointers, None)

    def _ask(self, name: str, *arguments: object) -> None:
        if code := getattr(self._driver, name)(*arguments):
            raise KernelError(f"{name} failed with code {code}")


def _as_c(argument: Argument) -> Any:
    match argument:
        case int():
            return ctypes.c_int64(argument)
        case float():
            return ctypes.c_double(argument)
        case _:
            return ctypes.c_void_p(argument.data_ptr())


def _compiled(source: str, name: str, options: Sequence[str]) -> bytes:
    """The machine code."""
    major = str(torch.version.cuda).split(".")[0]
    brought = sorted(Path(torch.__file__).parents[1].glob(f"nvidia/*/lib/libnvrtc.so.{major}*"))  # by PyTorch's own packages
    nvrtc = _library(f"libnvrtc.so.{major}", *map(str, brought), "libnvrtc.so", f"nvrtc64_{major}0_0.dll")
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), f"{name}.cu".encode(), 0, None, None):
        raise KernelError("nvrtcCreateProgram failed")
    try:
        flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if nvrtc.nvrtcCompileProgram(program, len(options), flags):
            raise KernelError(f"compilation failed: {_text(nvrtc, 'ProgramLog', program).decode(errors='replace')}")
        return _text(nvrtc, "CUBIN", program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: Any, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    held = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, held)
    return held.raw


def _library(*names: str) -> Any:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise KernelError(f"{names[0]} is not on this machine")
