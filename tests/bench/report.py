# SPDX-License-Identifier: MIT
"""The results as text and as JSON."""
import json

import rows

HEAD = ("row", "median", "spread", "beside", "spread", "ratio", "of rounds", "reach", "")


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}" if value >= 0.005 or value == 0 else f"{value:.2g}"


def percent(spread, rounds):
    return f"{spread:.0%}" if len(rounds) >= rows.MIN_FOR_SPREAD else "?"


def cells(result):
    if "median" not in result:
        return (result["row"], *[""] * 6, result["reach"], result["verdict"])
    mine = (f"{number(result['median'])} {result['unit']}", percent(result["spread"], result["rounds"]))
    theirs = ("", "", "", "")
    if result["ratio"] is not None:
        theirs = (number(result["peer_median"]), percent(result["peer_spread"], result["peer_rounds"]), number(result["ratio"]),
                  f"{number(result['ratio_lowest'])}-{number(result['ratio_highest'])}")
    return (result["row"], *mine, *theirs, result["reach"], result["verdict"])


def table(results):
    lines = [HEAD, *[cells(result) for result in results]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    left = {0, len(HEAD) - 1}
    return ["  ".join(cell.ljust(width) if column in left else cell.rjust(width)
                      for column, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines]


def explanations(results):
    for result in results:
        beside = f", beside {result['peer']}" if "peer" in result else ""
        if "what" in result:
            yield f"{result['row']}: {result['what']} ({result['figure']}){beside}"


def noise_lines(table_):
    """Where the figures are not to be believed, and why."""
    results = table_["rows"]
    if table_["noise"]:
        yield "The machine was not quiet: " + "; ".join(table_["noise"]) + "."
    for result in results:
        if result.get("noise"):
            yield f"{result['row']}: {'; '.join(result['noise'])}"
    unclear = sum(result["verdict"] == rows.UNCLEAR for result in results)
    if unclear:
        yield f"Too noisy to tell in {unclear} of {len(results)} rows: run it again on a quiet machine."


HEADINGS = {"raised": "Socket buffers as large as the system allows",
            "default": "Socket buffers as everybody gets them (net.core.rmem_default)"}


def as_table(buffers, results, load):
    """One table as JSON has it, and text() and plot.py take it."""
    return {"buffers": buffers, "load": load.as_json(), "noise": load.complaints(),
            "rows": [rounded(result) for result in results]}


def text(table_):
    results = table_["rows"]
    return [f"{HEADINGS[table_['buffers']]}:", "", *table(results), "", *explanations(results), "", *noise_lines(table_), ""]


def document(tables, about):
    return {**about, "tables": tables}


def rounded(result):
    def brief(value):
        if isinstance(value, float):
            return float(f"{value:.5g}")
        return [brief(item) for item in value] if isinstance(value, list) else value
    return {key: brief(value) for key, value in result.items()}


def write_json(path, content):
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
