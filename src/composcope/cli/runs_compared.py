"""The command that compares runs."""

from typing import Annotated

import typer

from composcope.cli.app import DEFAULT_STORE, JsonOption, StoreOption, app, complete_run_ids, print_json
from composcope.cli.groups import LOOK
from composcope.errors import BadInput


@app.command(rich_help_panel=LOOK, short_help="Print what differs between runs, in spec and in results.")
def compare(
    run_ids: Annotated[
        list[str], typer.Argument(help="Two or more runs, by id or first digits.", autocompletion=complete_run_ids)
    ],
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Print what differs between runs: the fields of their specs, their errors, and their verdicts if measured."""
    from composcope.runs.compare import compare_runs
    from composcope.store.store import Store
    from composcope.terminal import print_table

    if len(run_ids) < 2:
        raise BadInput(
            f"compare needs at least two runs, not {len(run_ids)}; composcope list --store {store} lists them"
        )
    target = Store(store)
    comparison = compare_runs(target, [target.find(prefix) for prefix in run_ids])
    if as_json:
        print_json(comparison)
        return
    for title, rows in (("spec", comparison.settings), ("results", comparison.results)):
        print(f"{title}:" if rows else f"{title}: no difference")
        if rows:
            print_table([{"": name, **values} for name, values in rows.items()])
        print()
