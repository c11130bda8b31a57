"""Every test that docs/reliability.md names is there."""

import fnmatch
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def known():
    names = set()
    for path in (ROOT / "tests").rglob("*.cpp"):
        text = path.read_text(encoding="utf-8")
        names.update(f"{suite}.{name}" for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", text, re.M))
    for path in [*(ROOT / "tests").rglob("CMakeLists.txt"), ROOT / "fuzz/CMakeLists.txt"]:
        names.update(re.findall(r"add_test\(\s*NAME ([\w.]+)", path.read_text(encoding="utf-8")))
    return names


class Reliability(unittest.TestCase):
    def test_every_promise_has_a_test_that_exists(self):
        names, rows = known(), 0
        for line in (ROOT / "docs/reliability.md").read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not line.startswith("|") or len(cells) != 2 or cells[0] in ("promise", "---"):
                continue
            rows += 1
            tests = re.findall(r"`(\w+\.[\w*]+)`", cells[1])
            with self.subTest(promise=cells[0]):
                self.assertTrue(tests)
                for test in tests:
                    self.assertTrue(fnmatch.filter(names, test), f"there is no test {test}")
        self.assertGreater(rows, 15)


if __name__ == "__main__":
    sys.exit(unittest.main())
