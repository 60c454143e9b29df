"""Writes what each agent would write, for `sess doctor` to check that it is found.

Runs as `python -m sessiond.service.probe WORD` in a temporary home.
"""

from __future__ import annotations

import os
import sys

from sessiond.config import Config
from sessiond.sources import all_sources


def write(word: str) -> list[str]:
    """Write a file with the word in each agent's place; return the agents that have one."""
    agents = []
    for source in all_sources(Config()):
        files = source.probe(word)
        for path, data in files.items():
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(path, "xb") as file:
                file.write(data)
        agents += [source.agent] if files else []
    return agents


if __name__ == "__main__":
    sys.stdout.writelines(f"{agent}\n" for agent in write(sys.argv[1]))
