"""How the commands are arranged in `composcope --help`, and what `composcope` alone prints."""

from typing import Any

from typer.core import TyperGroup

START, REPRODUCE, TRAIN = "Start", "Reproduce a paper, or run a study", "Train"
DIAGNOSE, LOOK = "Diagnose", "Look at results"
ORDER = (START, REPRODUCE, TRAIN, DIAGNOSE, LOOK)

WELCOME = """\
composcope: does this generative decoder compose?

Three things to do first:

  composcope reproduce cures
      Trains the paper's failing decoder and its cures, draws them side by side and writes out/report.html.

  composcope init spec.toml
      Writes a commented file that describes one run. Train it with: composcope run spec.toml

  composcope diagnose your_file.py:your_function --spec task.toml
      Tells whether your own PyTorch decoder composes, and why. Without one of your own: composcope diagnose RUN_ID

All commands: composcope --help"""


class GroupedCommands(TyperGroup):
    """Commands in the order of their groups; within a group as they were registered."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=self._group_of)

    def _group_of(self, name: str) -> int:
        group = getattr(self.commands[name], "rich_help_panel", None)
        return ORDER.index(group) if group in ORDER else len(ORDER)
