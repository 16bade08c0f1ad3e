"""vLLM's side of a job, in an interpreter of its own."""

import os
import re
import subprocess
from pathlib import Path

from specviz.bench.conformance.job import Counts, Job, read_counts
from specviz.errors import ConfigError, UnsupportedModel
from specviz.words import _

SCRIPT = Path(__file__).with_name("in_vllm.py")


def decode(job: Job, python: Path, folder: Path, context: int) -> tuple[Counts, ...]:
    """Run a job in vLLM; `folder` takes the job, the log and the result.

    Raises:
        ConfigError: there is no such interpreter.
        UnsupportedModel: vLLM refused the job, in its own words.
    """
    if not python.is_file():
        raise ConfigError(
            _("there is no interpreter {python}; make one with: make conformance").format(
                python=python
            )
        )
    folder.mkdir(parents=True, exist_ok=True)
    asked, result, log = (folder / name for name in ("job.json", "result.json", "log.txt"))
    job.write(asked, context)
    result.unlink(missing_ok=True)
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.run(
            [python, "-P", SCRIPT, asked, result],
            env=env,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode or not result.is_file():
        raise UnsupportedModel(
            _("vLLM did not run {scheme}: {said} (all of it: {log})").format(
                scheme=job.scheme, said=reason(log.read_text("utf-8", "replace")), log=log
            )
        )
    return read_counts(result)


def reason(log: str) -> str:
    """Return the line of a log that says most: the last error, else the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"Value error, |\w+Error: ", line)]
    said = (errors or lines or ["nothing"])[-1]
    return said.removeprefix("[rank0]: ").partition(" [type=")[0][:400]
