"""A coverage-guided fuzzer of files: `python -m tests.fuzz.atheris_files FORMAT SECONDS [FOLDER]`, or `make fuzz SECONDS=60` for all.

FORMAT is csv, parquet or arrow. It begins with the tables of seeds.py and the inputs that ever failed, keeps what it finds worth keeping
under FOLDER (build/fuzz by default), and ends with an exit code other than 0 at the first input that breaks what target.py asserts, that
ends the process, or that takes very long. That input is kept as FOLDER/FORMAT/failed-...: give it a name that says what it shows,
put it into tests/fuzz/inputs, and the tests replay it from then on."""

from __future__ import annotations

import sys
from pathlib import Path

INPUTS = Path(__file__).parent / "inputs"
SUFFIX = {"csv": ".csv", "parquet": ".parquet", "arrow": ".arrow"}
LONGEST_INPUT = 16_384  # bytes
SLOW, MEMORY = 30, 4096  # seconds for one input, and MiB in all, that count as failures


def main(kind: str, seconds: int, folder: Path) -> None:
    import atheris  # here, because whoever collects the tests imports this file, and need not have it

    with atheris.instrument_imports(include=["dpgram"]):  # what it knows of dpgram it learns while that is imported
        from tests.fuzz import seeds, target

    corpus, path = folder / kind, folder / f"table{SUFFIX[kind]}"
    corpus.mkdir(parents=True, exist_ok=True)
    for name, content in seeds.FORMATS[kind]():
        if name.endswith(SUFFIX[kind]):
            (corpus / name).write_bytes(content)
    for saved in INPUTS.glob(f"*{SUFFIX[kind]}"):
        (corpus / saved.name).write_bytes(saved.read_bytes())

    def one(content: bytes) -> None:
        path.write_bytes(content)
        # Rows one by one in a quarter of the inputs: it takes most of the time.
        target.check_table(lambda: str(path), target.SCHEMAS[len(content) % 2], where=str(path), alone=len(content) % 8 < 2)

    options = [f"-max_total_time={seconds}", f"-timeout={SLOW}", f"-rss_limit_mb={MEMORY}", f"-max_len={LONGEST_INPUT}"]
    atheris.Setup(
        [sys.argv[0], str(corpus), f"-artifact_prefix={corpus}/failed-", "-print_final_stats=1", "-verbosity=0", *options], one
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3] if len(sys.argv) > 3 else "build/fuzz"))
