"""Install what `make dist` made into empty environments, and check that it works there.

Usage: python tools/smoke.py dist            the wheel with the kernel, the pure wheel and the sdist, each in an environment of its own
       python tools/smoke.py --installed yes the environment that runs this, which must have the kernel (no: must not)

Each environment runs `dpgram doctor` and `dpgram demo`. The exit code is 1 where one of them fails, or where an installation has the
compiled kernel and should not, or the other way round. The pure wheel is installed without a C compiler."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NO_COMPILER = {"CC": "no-such-compiler", "DPGRAM_REQUIRE_KERNEL": "0"}
KERNEL = {True: "yes", False: "no"}


def check(python: Path, kernel: bool) -> str:
    """What is wrong with dpgram in this environment, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            told = json.loads(output(folder, python, "-m", "dpgram", "doctor", "--json"))
            output(folder, python, "-m", "dpgram", "demo")
            output(folder, python, "-m", "dpgram", "inspect", "demo/release.json")
        except subprocess.CalledProcessError as error:
            return f"{' '.join(error.cmd[1:])} failed with exit code {error.returncode}:\n{error.stdout}{error.stderr}"
    if told["kernel"]["compiled"] != kernel:
        return f"kernel {KERNEL[not kernel]}, and it should be {KERNEL[kernel]}"
    return ""


def output(folder: str, *command: str | Path, **environment: str) -> str:
    """What a command prints, run where the sources of dpgram are out of sight."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DPGRAM_KERNEL")}
    words = [str(word) for word in command]
    return subprocess.run(
        words,
        cwd=folder,
        env={**clean, "PYTHONUTF8": "1", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    ).stdout


def environment(folder: str, package: Path, **variables: str) -> Path:
    """The Python of a new environment that has the package, and what `dpgram demo` needs."""
    output(folder, sys.executable, "-m", "venv", "venv")
    python = Path(folder, "venv", "Scripts" if os.name == "nt" else "bin", "python")
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    output(folder, python, *pip, f"{package}[plot]", **variables)
    return python


def packages(folder: Path) -> list[tuple[Path, bool, dict[str, str]]]:
    """Each file of ``folder``, whether it must bring the kernel, and the environment variables of its installation."""
    (sdist,) = folder.glob("*.tar.gz")
    (pure,) = folder.glob("*-none-any.whl")
    (compiled,) = set(folder.glob("*.whl")) - {pure}
    return [(compiled, True, NO_COMPILER), (pure, False, NO_COMPILER), (sdist, True, {"DPGRAM_REQUIRE_KERNEL": "1"})]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--installed"]:
        wrong = check(Path(sys.executable), arguments[1] == "yes")
        print(wrong or f"this environment: dpgram demo ran, kernel {arguments[1]}")
        return bool(wrong)
    with ThreadPoolExecutor() as team:
        wrong = list(team.map(lambda package: tried(*package), packages(Path(arguments[0]).resolve())))
    return int(any(wrong))


def tried(package: Path, kernel: bool, variables: dict[str, str]) -> bool:
    """Install and check one package, and say what came of it; True if something is wrong."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            wrong = check(environment(folder, package, **variables), kernel)
        except subprocess.CalledProcessError as error:
            wrong = f"cannot be installed:\n{error.stderr}"
    words = f"FAILED: {wrong}" if wrong else f"installs, dpgram demo runs, kernel {KERNEL[kernel]}"
    print(f"{package.name}: {words} ({time.monotonic() - started:.0f} s, Python {platform.python_version()})", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
