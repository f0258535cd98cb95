"""Whether two fresh processes draw the same noise: a seed that is fixed when a module is imported shows nowhere else."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np

from dpgram.audits.draws import releases
from dpgram.audits.laws.registry import find, law_of
from dpgram.mechanisms.conversation import Task
from dpgram.sampling.base import RandomSource
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.secure import SecureSource


def faults_of_processes(mechanism: str, task: Task) -> list[str]:
    """Two releases of the same table, in both arithmetics, by two new interpreters. A mechanism that those do not know is left out."""
    command = [sys.executable, "-m", "dpgram.audits.fresh", pickle.dumps((mechanism, task)).hex()]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(2)]
    said = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        return []
    one, other = (json.loads(text) for text in said)
    return [
        f"two processes drew the same noise ({name})" for name in one if np.any(np.array(one[name]) == np.array(other[name]))
    ]


def _main(sent: str) -> None:
    name, task = pickle.loads(bytes.fromhex(sent))
    mechanism = replace(find(name), batched=False)
    table = law_of(name)(task, mechanism.calibrate(task)).worst_pairs()[0].first
    sources: list[RandomSource] = [SecureSource(), ExactSource()]
    made = {source.arithmetic: releases(mechanism, task, table, source, 1).gram[0] for source in sources}
    print(json.dumps({name: gram.ravel().tolist() for name, gram in made.items()}))


if __name__ == "__main__":
    _main(sys.argv[1])
