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

app = typer.Typer(
    help="Keep versions of arrays: list, compare, merge, import, export and delete them. See docs/versions.md.",
    no_args_is_help=True,
)
# A version may begin with a minus sign: "-1" is the parent of the current version, not an option.
DASHES = {"ignore_unknown_options": True}
app.command("apply")(apply.apply)
app.command("blame", context_settings=DASHES)(blame.blame)
app.command("branch", context_settings=DASHES)(branch.branch)
app.command("bundle", context_settings=DASHES)(bundle.bundle)
app.command("checkout", context_settings=DASHES)(checkout.checkout)
app.command("delete", context_settings=DASHES)(delete.delete)
app.command("diff", context_settings=DASHES)(diff.diff)
app.command("expire")(expire.expire)
app.command("export", context_settings=DASHES)(export.export)
app.command("import")(importing.import_files)
app.command("log")(log.log)
app.command("merge", context_settings=DASHES)(merge.merge)
app.command("pull", context_settings=DASHES)(pull.pull)
app.command("push", context_settings=DASHES)(push.push)
app.command("repack")(repack.repack)
app.command("repair")(repair.repair)
app.command("show", context_settings=DASHES)(show.show)
app.command("stats")(stats.stats)
app.command("tag", context_settings=DASHES)(tag.tag)
app.command("verify", context_settings=DASHES)(verify.verify)
