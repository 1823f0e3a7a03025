"""The verb that compares groups of animals: compare."""

from pathlib import Path
from typing import Any

from svae.cli._app import Json, verb
from svae.cli._print import print_json, print_table, report, say

SHOWN = 12  # rows of each table on the screen


@verb
def compare(
    run: Path,
    /,
    *,
    by: str = "group",
    groups: Path | None = None,
    reference: str | None = None,
    template: bool = False,
    json: Json = False,
):
    """Compare groups of animals: how much each state is used, how long it lasts, and what follows it.

    The animal is the unit, never the frame: at least 3 in each group. RUN/compare/BY gets the tables, figures and a
    paragraph of methods. Of several discrete blocks each has a folder there.

    Args:
        run: The run folder, or a folder that `svae apply` wrote.
        by: The column of the table that says the group of each animal.
        groups: A csv table with the columns recording, animal (where one has several recordings) and the groups;
            RUN/groups.csv unless given. A recording without a group is left out.
        reference: The group that the others are compared with; the first group that the table names unless given.
        template: Write the table with a row for each recording, to be filled in, and end.
    """
    from svae import compare as room

    if template:
        file = groups or run / room.FILE
        names = room.recordings_of(room.bouts_of(run))
        report({"template": str(room.write_template(file, names, by)), "recordings": len(names)}, str(run), json)
        return
    done = _each(run, by, groups, reference)
    if json:
        told = [room.summary(one) | {"tables": one.tables} for one in done]
        print_json(told[0] if not done[0].block else {"blocks": told})
        return
    for one in done:
        _show(one)


def _each(run: Path, by: str, groups: Path | None, reference: str | None) -> list[Any]:
    """The comparison of each discrete block; one of which all frames are in one state is left out with a sentence."""
    from svae import compare as room
    from svae.data import DataError

    done, why = [], []
    for block in room.blocks_in(run):
        try:
            done.append(room.compare(run, by, groups, reference, block))
        except DataError as error:
            why.append(error)
    if not done:
        raise why[0]
    say(f"{block_error}." for block_error in why)
    return done


def _show(done: Any):
    """The largest effects of each family, then what to be careful about and where the rest is."""
    for name, rows in done.tables.items():
        several = len(done.study.groups) > 2
        largest = sorted(rows, key=lambda row: -abs(row["g"] or 0))[:SHOWN]
        called = sum(row["differs"] for row in rows)
        of = f" of {done.block}" if done.block else ""
        title = f"{name}{of}: {called} of {len(rows)} differ (false discovery rate 5 %)"
        if len(rows) > SHOWN:
            title += f"; the {SHOWN} largest effects"
        shown = [_cells(row, several) for row in largest]
        if shown:
            print_table(title, list(shown[0]), [list(row.values()) for row in shown])
    report({f"note {i + 1}": text for i, text in enumerate(done.warnings)} | {"folder": str(done.out)}, "", False)


def _cells(row: dict[str, Any], several: bool) -> dict[str, str]:
    arrow = f" → {row['next_name']}" if "next_name" in row else ""
    pair = {"groups": f"{row['group_b']} / {row['group_a']}"} if several else {}
    interval = lambda value, low, high: "–" if value is None else f"{value:.3g} [{low:.3g}, {high:.3g}]"  # noqa: E731
    number = lambda value: "–" if value is None else f"{value:.2g}"  # noqa: E731
    return {
        "state": row["name"] + arrow,
        **pair,
        row["group_a"] if not several else "first": number(row["mean_a"]),
        row["group_b"] if not several else "second": number(row["mean_b"]),
        f"effect, {row['effect_unit']}": interval(row["effect"], row["low"], row["high"]),
        "Hedges' g": interval(row["g"], row["g_low"], row["g_high"]),
        "p": number(row["p"]),
        "q": number(row["q"]),
        "": "differs" if row["differs"] else "",
    }
