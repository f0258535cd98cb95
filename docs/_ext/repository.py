"""Pages that are made when the site is built, from files outside docs/, and links that lead out of docs/.

A link works on GitHub as it is written, relative to its file. On the site it must lead to a page of the site, or to the file in the
repository, or, where the address of the repository is not known, it becomes plain text that names the file."""

from __future__ import annotations

import os
import re
from pathlib import Path

PROOFS = "src/dpgram/mechanisms/proofs"
PROJECT = {"CONTRIBUTING.md": "contributing", "SECURITY.md": "security", "CHANGELOG.md": "changelog"}  # pages under project/
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", flags=re.MULTILINE | re.DOTALL)


class Repository:
    """The files of one checkout, and where they stand on the site."""

    def __init__(self, root: Path, address: str = ""):
        self.root, self.address = root, address.rstrip("/")
        proofs = sorted((root / PROOFS).glob("*.md"))
        self.made = {f"{PROOFS}/{proof.name}": f"proofs/{proof.name}" for proof in proofs}
        self.made |= {file: f"project/{page}.md" for file, page in PROJECT.items() if (root / file).exists()}

    def write_pages(self) -> None:
        """The pages of proofs/ and project/. A page that has not changed is left alone, and one whose file is gone goes too."""
        for folder in ("proofs", "project"):
            for old in (self.root / "docs" / folder).glob("*.md"):
                if f"{folder}/{old.name}" not in self.made.values() and old.name != "index.md":
                    old.unlink()
        for file, page in self.made.items():
            text = (self.root / file).read_text(encoding="utf-8")
            if file.startswith(PROOFS):
                text = pins_listed(text)
            self.write(page, self.linked(text, of=file, on=page))
        proofs = "\n".join(page.split("/")[1] for page in self.made.values() if page.startswith("proofs/"))
        words = "# Proofs\n\nEvery mechanism has a proof. It stands beside the code, and a test pins it to the code that it speaks of."
        self.write("proofs/index.md", f"{words}\n\n```{{toctree}}\n:maxdepth: 1\n\n{proofs}\n```\n")

    def write(self, page: str, text: str) -> None:
        path = self.root / "docs" / page
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    def linked(self, text: str, of: str, on: str) -> str:
        """``text`` of the file ``of`` as it must read on the page ``on``: links changed, code left as it is."""
        parts = FENCE.split(text)
        return "".join(
            part if part.startswith("```") else LINK.sub(lambda m: self.link(*m.groups(), of=of, on=on), part) for part in parts
        )

    def link(self, bang: str, words: str, target: str, of: str, on: str) -> str:
        path, hash_, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not path:
            return f"{bang}[{words}]({target})"
        file = os.path.normpath(os.path.join(os.path.dirname(of), path))
        page = self.made.get(file) or (
            "index.md" if file == "README.md" else file.removeprefix("docs/") if file.startswith("docs/") else ""
        )
        if page:
            return f"{bang}[{words}]({os.path.relpath(page, os.path.dirname(on) or '.')}{hash_}{anchor})"
        if self.address:
            return f"[{words}]({self.address}/blob/main/{file}{hash_}{anchor})"
        return f"{words} (`{file}`)" if words.strip("`") != file else f"`{file}`"


def pins_listed(proof: str) -> str:
    """Lines that pin code, "Code: name digest", as a list."""
    return re.sub(r"^Code: (\S+) (\S+)$", r"- Code: `\1`, pinned as `\2`", proof, flags=re.MULTILINE)
