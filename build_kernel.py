"""Hatchling's hook that compiles src/dpgram/native into one shared library beside its sources.

The library has no part of Python in it, so one wheel per platform serves every version; `auditwheel repair` gives it the tag that a
package index wants. Where there is no C compiler the package is built without it, and says so; DPGRAM_REQUIRE_KERNEL=1 makes that an
error."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("src", "dpgram", "native")
FLAGS = ["-std=c11", "-O3", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]
X86 = platform.machine().lower() in ("x86_64", "amd64")
INSTRUCTION_SETS = {"plain": ["-DLANES=2"]}
if X86:
    INSTRUCTION_SETS |= {
        "avx2": ["-DLANES=4", "-mavx2", "-mfma"],
        "avx512": ["-DLANES=8", "-mavx512f", "-mavx512dq", "-mfma"],
    }


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
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def compile_kernel(folder: Path, target: Path) -> None:
    """Each file once for every instruction set; only gram.c and map.c may fuse products and sums, because there they are exact anyway."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory() as scratch:
        objects = []

        def run(source: str, name: str, *flags: str) -> None:
            objects.append(str(Path(scratch, f"{name}.o")))
            subprocess.run([*compiler, *FLAGS, *flags, "-c", str(folder / source), "-o", objects[-1]], check=True)

        for isa, flags in INSTRUCTION_SETS.items():
            run("rows.c", f"rows_{isa}", *flags, f"-DISA=_{isa}", "-ffp-contract=off")
            for exact in ("gram", "map"):
                run(f"{exact}.c", f"{exact}_{isa}", *flags, f"-DISA=_{isa}", "-ffp-contract=fast")
        run("dispatch.c", "dispatch", "-fvisibility=default", *(["-DHAVE_X86"] if X86 else []))
        made = Path(scratch, "_kernel.so")
        subprocess.run([*compiler, "-shared", "-o", str(made), *objects, "-lm"], check=True)
        os.replace(_beside(target, made.read_bytes()), target)


def _beside(target: Path, content: bytes) -> Path:
    """The content in a new file beside the target, so that it can take its place in one step: a running process keeps the old one."""
    new = target.with_name(f"_kernel.{os.getpid()}.tmp")
    new.write_bytes(content)
    new.chmod(0o755)
    return new
