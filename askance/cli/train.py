"""`askance train`: training sets, and training by a recipe."""

from __future__ import annotations

from askance.cli.group import command_group
from askance.cli.train_recipe import commands

app = command_group("Small models of one's own: training sets, and training by a recipe.")
app.add_typer(commands)
