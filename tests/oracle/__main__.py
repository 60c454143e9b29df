"""Prints what the oracle reads: `python -m tests.oracle AGENT PATH`."""

from __future__ import annotations

import dataclasses
import json
import sys
from importlib import import_module
from pathlib import Path

agent, path = sys.argv[1:]
for session in import_module(f"tests.oracle.{agent}").read(Path(path).resolve()).values():
    print(json.dumps(dataclasses.asdict(session)))
