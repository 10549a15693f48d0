"""`hyperslab versions`: what can be done with the versions of a file; each command is one file."""

from __future__ import annotations

import typer

from hyperslab.cli.versions import delete, diff, export, log, repair, show, stats, verify

app = typer.Typer(
    help="The versions of a file: what is in them, what differs, whether all is well. docs/versions.md",
    no_args_is_help=True,
)
# A version may begin with a minus: "-1" is the parent of the current one, not an option.
DASHES = {"ignore_unknown_options": True}
app.command("delete", context_settings=DASHES)(delete.delete)
app.command("diff", context_settings=DASHES)(diff.diff)
app.command("export", context_settings=DASHES)(export.export)
app.command("log")(log.log)
app.command("repair")(repair.repair)
app.command("show", context_settings=DASHES)(show.show)
app.command("stats")(stats.stats)
app.command("verify", context_settings=DASHES)(verify.verify)
