"""The hook that compiles the kernel: what it builds where, under which tag, and what it says without a compiler."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]


class Hook:
    """Stands for Hatchling's class: the build tool is not installed where tests run."""

    def __init__(self, root):
        self.root, self.said = str(root), []
        self.app = SimpleNamespace(display_warning=self.said.append)


@pytest.fixture
def build(monkeypatch) -> ModuleType:
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", SimpleNamespace(BuildHookInterface=Hook))
    for name in ("hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    spec = importlib.util.spec_from_file_location("build_kernel", ROOT / "build_kernel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delenv("ARCHFLAGS", raising=False)
    monkeypatch.delenv("DPGRAM_REQUIRE_KERNEL", raising=False)
    return module


@pytest.mark.parametrize(
    ("system", "machine", "name", "tag", "sets"),
    [
        ("linux", "x86_64", "linux-x86_64", "linux_x86_64", ["plain", "avx2", "avx512"]),
        ("linux", "aarch64", "linux-aarch64", "linux_aarch64", ["plain"]),
        ("darwin", "arm64", "macosx-10.13-universal2", "macosx_11_0_arm64", ["plain"]),
        ("darwin", "arm64", "macosx-14.2-arm64", "macosx_14_2_arm64", ["plain"]),
        ("darwin", "x86_64", "macosx-10.9-universal2", "macosx_10_13_x86_64", ["plain", "avx2", "avx512"]),
        ("win32", "AMD64", "win-amd64", "win_amd64", ["plain"]),
    ],
)
def test_every_system_has_its_tag_and_instruction_sets(build, system, machine, name, tag, sets, monkeypatch):
    monkeypatch.setattr(build, "MACOS", system == "darwin")
    monkeypatch.setattr(build, "WINDOWS", system == "win32")
    monkeypatch.setattr(build.platform, "machine", lambda: machine)
    assert build.platform_tag(name) == tag
    assert list(build.instruction_sets()) == sets


def test_macos_builds_for_the_machine_that_is_asked_for(build, monkeypatch):
    monkeypatch.setattr(build, "MACOS", True)
    monkeypatch.setattr(build.platform, "machine", lambda: "arm64")
    monkeypatch.setenv("ARCHFLAGS", "-arch x86_64")
    assert build.platform_tag("macosx-10.15-x86_64") == "macosx_10_15_x86_64"
    monkeypatch.setenv("ARCHFLAGS", "-arch arm64 -arch x86_64")
    assert build.machine() == "arm64"


def test_without_a_compiler_the_package_is_pure_and_says_so(build, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    left = tmp_path / build.NATIVE / "_kernel.so"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"of other sources")
    hook, data = build.KernelHook(tmp_path), {"artifacts": []}
    hook.initialize("standard", data)
    assert data == {"artifacts": []}
    assert not left.exists()
    assert "without its compiled kernel" in hook.said[0]
    monkeypatch.setenv("DPGRAM_REQUIRE_KERNEL", "1")
    with pytest.raises(OSError):
        hook.initialize("standard", data)


def test_a_compiled_package_serves_every_python(build, tmp_path, monkeypatch):
    """The compiler is a stand-in that writes what it is told to write."""
    told = []

    def compile_(command, check):
        told.append(command)
        Path(command[command.index("-o") + 1]).write_bytes(b"code")

    monkeypatch.setattr(build.subprocess, "run", compile_)
    (tmp_path / build.NATIVE).mkdir(parents=True)
    hook, data = build.KernelHook(tmp_path), {"artifacts": []}
    hook.initialize("standard", data)
    assert data["tag"] == f"py3-none-{build.platform_tag(sysconfig.get_platform())}"
    assert (data["pure_python"], len(data["artifacts"]), hook.said) == (False, 1, [])
    rows = [command for command in told if any(word.endswith("rows.c") for word in command)]
    assert all("-ffp-contract=off" in command for command in rows)
    assert "-shared" in told[-1]
