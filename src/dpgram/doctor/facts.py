"""What is installed here: Python, the kernel, extras, Java, a GPU. Imports none of the libraries that it looks for."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

from dpgram.doctor.selftests import Result, run_self_tests
from dpgram.engines.local import checked_threads
from dpgram.native import library
from dpgram.native.library import CHOICE, INSTRUCTIONS
from dpgram.version import __version__

EXTRAS = {  # name in pyproject.toml -> the distributions that it brings, and what it is for; extras for developers are left out
    "plot": (("matplotlib",), "figures, and dpgram demo"),
    "frames": (("pandas", "polars", "duckdb"), "data frames as tables, and to_frame()"),
    "formulas": (("formulaic",), "regressions written as formulas"),
    "sklearn": (("scikit-learn",), "private estimators; lasso and elastic net"),
    "sql": (("duckdb", "adbc-driver-postgresql", "adbc-driver-manager"), "DuckDB and PostgreSQL as tables"),
    "spark": (("pyspark",), "tables on a Spark cluster"),
    "torch": (("torch",), "tensors as tables, and --device cuda"),
    "accounting": (("dp-accounting",), "tighter totals in ledgers"),
    "opendp": (("opendp",), "releases as OpenDP measurements"),
    "sign": (("cryptography",), "signed releases"),
}
LEAST_JAVA = 17  # what Spark 4 needs


@dataclass(frozen=True)
class Extra:
    """One extra of the package."""

    purpose: str
    versions: dict[str, str | None]  # by distribution; None where it is not installed

    @property
    def installed(self) -> bool:
        return None not in self.versions.values()


@dataclass(frozen=True)
class KernelFacts:
    """What does the sums."""

    compiled: bool
    instructions: str | None
    words: str


@dataclass(frozen=True)
class Facts:
    """All that `dpgram doctor` says."""

    kernel: KernelFacts
    java: str
    gpu: str
    self_tests: list[Result]
    threads: int = field(default_factory=checked_threads)
    version: str = __version__
    python: str = field(default_factory=lambda: f"{platform.python_implementation()} {platform.python_version()}")
    platform: str = field(default_factory=lambda: f"{platform.system()} {platform.machine()}")
    place: str = str(Path(__file__).parents[1])
    extras: dict[str, Extra] = field(default_factory=lambda: {name: extra_facts(name) for name in EXTRAS})

    @property
    def healthy(self) -> bool:
        return all(result.passed for result in self.self_tests)

    def to_dict(self) -> dict:
        """As JSON."""
        extras = {name: {"installed": extra.installed, **asdict(extra)} for name, extra in self.extras.items()}
        return {"healthy": self.healthy, **asdict(self), "extras": extras}


def gather() -> Facts:
    """Look at this installation, and run the self-tests."""
    return Facts(kernel=kernel_facts(), java=java(), gpu=gpu(), self_tests=run_self_tests())


def kernel_facts() -> KernelFacts:
    """The kernel as a release would get it, and why it is missing where it is."""
    try:
        compiled = library.kernel()
    except OSError as error:
        return KernelFacts(False, None, f"cannot be loaded: {error}")
    if compiled is not None:
        return KernelFacts(True, INSTRUCTIONS[compiled.isa], f"compiled, {INSTRUCTIONS[compiled.isa]} instructions")
    if library.FILE.is_file():
        return KernelFacts(False, None, f"compiled, and left out because {CHOICE}=numpy is set: NumPy does the sums")
    return KernelFacts(False, None, "not compiled: NumPy does the sums, with the same results but more slowly")


def extra_facts(name: str) -> Extra:
    distributions, purpose = EXTRAS[name]
    return Extra(purpose, {each: version_of(each) for each in distributions})


def version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def java() -> str:
    """Which Java would run Spark, in words."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if found is None:
        return f"none found; Spark on this machine needs Java {LEAST_JAVA} or later"
    try:
        told = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=20, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return f"{found} does not run"
    number = re.search(r'version "(?:1\.)?(\d+)', told)
    if number is None:
        return f"{found}, of an unknown version"
    old = "" if int(number[1]) >= LEAST_JAVA else f", too old for Spark, which needs {LEAST_JAVA}"
    return f"Java {number[1]}{old}"


def gpu() -> str:
    """Which NVIDIA devices the driver knows, in words; PyTorch is not asked, because its import takes seconds."""
    names = cuda_devices()
    if not names:
        return "no NVIDIA GPU found"
    usable = "" if version_of("torch") else "; install the torch extra to use it"
    return f"{', '.join(names)}{usable}"


def cuda_devices() -> list[str]:
    """Names of CUDA devices, from the driver's own library."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return []
    count, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    names = []
    for place in range(count.value):
        if not driver.cuDeviceGetName(name, len(name), place):
            names.append(name.value.decode(errors="replace"))
    return names
