"""Hatchling's hook that compiles src/dpgram/native into one shared library beside its sources.

The library has no part of Python in it, so one wheel per platform serves every version; `auditwheel repair` gives it the tag that a
package index wants. Where there is no C compiler the package is built without it, and says so; DPGRAM_REQUIRE_KERNEL=1 makes that an
error, and HATCH_BUILD_NO_HOOKS=true leaves the kernel out on purpose (the pure wheel of `make dist`).

The sources use vectors as GCC and Clang have them. So Linux and macOS compile them with `cc`, Windows with the compiler that CC names
(`python -m ziglang cc` in the workflow) and for the plain instruction set alone: what detects others is not in that compiler's library,
and MinGW's GCC does not align vectors on the stack. Microsoft's compiler cannot read them."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("src", "dpgram", "native")
FLAGS = ["-std=c11", "-O3", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]
WINDOWS, MACOS = sys.platform == "win32", sys.platform == "darwin"
PLAIN = {"plain": ["-DLANES=2"]}
WIDER = {
    "avx2": ["-DLANES=4", "-mavx2", "-mfma"],
    "avx512": ["-DLANES=8", "-mavx512f", "-mavx512dq", "-mfma"],
}


def machine() -> str:
    """The machine that is built for: on macOS ARCHFLAGS may name another than the one that builds."""
    named = re.findall(r"-arch\s+(\S+)", os.environ.get("ARCHFLAGS", "")) if MACOS else []
    return (named[0] if len(named) == 1 else platform.machine()).lower()


def instruction_sets() -> dict[str, list[str]]:
    """Flags by instruction set; on x86 the kernel picks the best one when it is loaded."""
    return PLAIN | (WIDER if machine() in ("x86_64", "amd64") and not WINDOWS else {})


def platform_tag(name: str | None = None) -> str:
    """The platform in the name of a wheel that holds the kernel. A library for one machine serves half of a universal Python."""
    name = name or sysconfig.get_platform()
    if MACOS:
        system, version, _ = name.split("-")
        least = (11, 0) if machine() == "arm64" else (10, 13)
        name = "-".join([system, ".".join(map(str, max(least, tuple(map(int, version.split(".")))))), machine()])
    return re.sub(r"[-.]", "_", name)


class KernelHook(BuildHookInterface):
    """Compiles the kernel before the files of a wheel, or of an editable install, are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        target = Path(self.root) / NATIVE / "_kernel.so"
        try:
            compile_kernel(Path(self.root) / NATIVE, target)
        except (OSError, subprocess.CalledProcessError) as error:
            target.unlink(missing_ok=True)  # one that was left from other sources would be worse than none
            if os.environ.get("DPGRAM_REQUIRE_KERNEL") == "1":
                raise
            self.app.display_warning(f"dpgram is built without its compiled kernel ({error}): NumPy will do the sums.")
            return
        build_data["artifacts"].append(str(NATIVE / "_kernel.so"))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def compile_kernel(folder: Path, target: Path) -> None:
    """What works on rows once for every instruction set; only gram.c and map.c may fuse products and sums: there they are exact anyway."""
    compiler = shlex.split(os.environ.get("CC", "cc"), posix=not WINDOWS)
    if MACOS:
        least = ".".join(platform_tag().split("_")[1:3])
        compiler += ["-arch", machine(), f"-mmacosx-version-min={least}"]
    sets = instruction_sets()
    with tempfile.TemporaryDirectory() as scratch:
        objects = []

        def run(source: str, name: str, *flags: str) -> None:
            objects.append(str(Path(scratch, f"{name}.o")))
            subprocess.run([*compiler, *FLAGS, *flags, "-c", str(folder / source), "-o", objects[-1]], check=True)

        for isa, flags in sets.items():
            run("rows.c", f"rows_{isa}", *flags, f"-DISA=_{isa}", "-ffp-contract=off")
            for exact in ("gram", "map"):
                run(f"{exact}.c", f"{exact}_{isa}", *flags, f"-DISA=_{isa}", "-ffp-contract=fast")
        run("dispatch.c", "dispatch", "-fvisibility=default", *(["-DHAVE_X86"] if len(sets) > 1 else []))
        run("units.c", "units", "-fvisibility=default")
        made = Path(scratch, "_kernel.so")
        subprocess.run([*compiler, "-shared", "-o", str(made), *objects, "-lm"], check=True)
        os.replace(_beside(target, made.read_bytes()), target)


def _beside(target: Path, content: bytes) -> Path:
    """The content in a new file beside the target, so that it can take its place in one step: a running process keeps the old one."""
    new = target.with_name(f"_kernel.{os.getpid()}.tmp")
    new.write_bytes(content)
    new.chmod(0o755)
    return new
