#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Goal: docs/performance.json and its picture are those of today's rows: a row that is new, renamed or gone, or another
# form of the file, shows. Method: the committed files beside `tests/bench/run --list` and what plot.py draws of them.
import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "bench"))
sys.dont_write_bytecode = True

import plot  # noqa: E402  (the path has to be set first)
import report  # noqa: E402

DOCUMENT = json.loads((ROOT / "docs" / "performance.json").read_text(encoding="utf-8"))


class Performance(unittest.TestCase):
    def test_each_table_has_the_rows_of_the_list(self):
        listed = subprocess.run([sys.executable, ROOT / "tests" / "bench" / "run", "--list"], check=True,
                                capture_output=True, text=True).stdout.split()
        for table in DOCUMENT["tables"]:
            self.assertEqual([row["row"] for row in table["rows"]], listed, table["buffers"])

    def test_each_table_can_be_printed(self):
        for table in DOCUMENT["tables"]:
            self.assertEqual(report.text(table)[0], report.HEADINGS[table["buffers"]] + ":")

    def test_the_picture_is_of_these_figures(self):
        self.assertEqual((ROOT / "docs" / "performance.svg").read_text(encoding="utf-8"), plot.draw(DOCUMENT))


if __name__ == "__main__":
    unittest.main()
