"""`hyperslab versions`: the commands that work with the versions of a file. Each command is one file."""

from __future__ import annotations

import typer

from hyperslab.cli.versions import (
    apply,
    blame,
    branch,
    bundle,
    checkout,
    delete,
    diff,
    expire,
    export,
    importing,
    log,
    merge,
    pull,
    push,
    repack,
    repair,
    show,
    stats,
    tag,
    verify,
)

app: typer.Typer = typer.Typer(
    help="Keep versions of arrays: list, compare, merge, import, export and delete them. See docs/versions.md.",
    no_args_is_help=True,
)
LOOK, MAKE, MOVE, SPACE = "Look", "Name, branch and merge", "Take elsewhere", "Free space, mend"
# A version may begin with a minus sign: "-1" is the parent of the current version, not an option.
DASHES = {"ignore_unknown_options": True}
app.command("log", rich_help_panel=LOOK)(log.log)
app.command("show", context_settings=DASHES, rich_help_panel=LOOK)(show.show)
app.command("diff", context_settings=DASHES, rich_help_panel=LOOK)(diff.diff)
app.command("blame", context_settings=DASHES, rich_help_panel=LOOK)(blame.blame)
app.command("stats", rich_help_panel=LOOK)(stats.stats)
app.command("verify", context_settings=DASHES, rich_help_panel=LOOK)(verify.verify)
app.command("branch", context_settings=DASHES, rich_help_panel=MAKE)(branch.branch)
app.command("checkout", context_settings=DASHES, rich_help_panel=MAKE)(checkout.checkout)
app.command("merge", context_settings=DASHES, rich_help_panel=MAKE)(merge.merge)
app.command("tag", context_settings=DASHES, rich_help_panel=MAKE)(tag.tag)
app.command("import", rich_help_panel=MOVE)(importing.import_files)
app.command("export", context_settings=DASHES, rich_help_panel=MOVE)(export.export)
app.command("push", context_settings=DASHES, rich_help_panel=MOVE)(push.push)
app.command("pull", context_settings=DASHES, rich_help_panel=MOVE)(pull.pull)
app.command("bundle", context_settings=DASHES, rich_help_panel=MOVE)(bundle.bundle)
app.command("apply", rich_help_panel=MOVE)(apply.apply)
app.command("expire", rich_help_panel=SPACE)(expire.expire)
app.command("delete", context_settings=DASHES, rich_help_panel=SPACE)(delete.delete)
app.command("repack", rich_help_panel=SPACE)(repack.repack)
app.command("repair", rich_help_panel=SPACE)(repair.repair)
