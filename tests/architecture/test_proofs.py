"""Proofs and code are pinned to each other."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import dpgram
from dpgram.mechanisms.proven import PROVEN
from dpgram.mechanisms.registry import MECHANISMS

PROOFS = Path(dpgram.__file__).parent / "mechanisms" / "proofs"
PINS = [
    (path.name, name, digest)
    for path in sorted(PROOFS.glob("*.md"))
    for name, digest in re.findall(r"^Code: (\S+) *(\S*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
]


def function(dotted: str):
    """A function, a class, or a method of one."""
    place, _, name = dotted.rpartition(".")
    try:
        return getattr(importlib.import_module(place), name)
    except ModuleNotFoundError:
        return getattr(function(place), name)


def code_digest(function: Callable) -> str:
    """Twelve hex digits of the code of a function or a class; comments, docstrings, layout and the marker itself do not count."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    definition.decorator_list = []
    for part in ast.walk(definition):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part) is not None:
            part.body = part.body[1:]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:12]


def c_digest(code: str) -> str:
    """Twelve hex digits of C code; comments and layout do not count."""
    bare = re.sub(r"/\*.*?\*/", " ", code, flags=re.DOTALL)
    return hashlib.sha256(" ".join(bare.split()).encode()).hexdigest()[:12]


def digest_now(name: str) -> str:
    """Of a function of ours, or of a C file such as dpgram/native/rows.c."""
    return c_digest((PROOFS.parents[2] / name).read_text()) if name.endswith((".c", ".h")) else code_digest(function(name))


def test_no_pin_is_empty():
    assert [name for _, name, digest in PINS if not digest] == []


@pytest.mark.parametrize(("proof", "name", "digest"), PINS)
def test_the_proof_was_read_on_this_code(proof, name, digest):
    found = digest_now(name)
    assert found == digest, f"{name} changed: read {proof} against it, then renew the pin to {found}"


def test_every_marked_function_has_its_statement_and_pin():
    assert PROVEN
    pinned = {(proof, name) for proof, name, _ in PINS}
    for statement, functions in PROVEN.items():
        proof, _, anchor = statement.partition("#")
        headings = re.findall(r"^#+ (.+)$", (PROOFS / proof).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, f"{proof} has no {anchor}"
        for marked in functions:
            assert (proof, f"{marked.__module__}.{marked.__qualname__}") in pinned


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=lambda m: m.name)
def test_every_mechanism_has_a_proof(mechanism):
    text = (PROOFS / mechanism.proof).read_text(encoding="utf-8")
    for word in ("**Releases**", "**Promises**", "**Assumes**", "REPLACE", "ADD_REMOVE", "∎"):
        assert word in text


def digest_of(folder: Path, name: str, code: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return code_digest(module.f)


def test_the_digest_sees_code_and_nothing_else(tmp_path):
    plain = digest_of(tmp_path, "plain", "def f(x):\n    return x + 1\n")
    commented = digest_of(tmp_path, "commented", 'def f(x):\n    """Words."""\n    return (x + 1)  # more words\n')
    changed = digest_of(tmp_path, "changed", "def f(x):\n    return x + 2\n")
    assert plain == commented != changed


def test_the_digest_of_c_sees_code_and_nothing_else():
    assert c_digest("int f(void) { return 1; } /* one */") == c_digest(
        "int f(void)\n{ /* a\n b */ return 1; }".replace("\n{", " {")
    )
    assert c_digest("int f(void) { return 1; }") != c_digest("int f(void) { return 2; }")
