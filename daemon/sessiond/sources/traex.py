"""TRAE CLI (TraeX), which writes the same rollouts as Codex."""

from __future__ import annotations

import os

from sessiond.families.rollouts import RolloutSource
from sessiond.sourcekit.base import REAL_FILES


class TraexSource(RolloutSource):
    agent = "traex"
    title = "TRAE CLI"
    variables = ("TRAECLI_HOME", "TRAE_HOME")
    reads = "Rollouts, archived ones included, and the names of threads."
    leaves = (("the editor's databases", "encrypted"),)
    known_from = REAL_FILES
    home_variable = "TRAECLI_HOME"
    home_folder = (".trae", "cli")
    provider = "trae"
    resume_command = ("traex", "resume")

    def home(self) -> str:
        around = self.moved("TRAE_HOME")
        if around and not self.moved(self.home_variable):
            return os.path.join(around, "cli")
        return super().home()


SOURCE = TraexSource
