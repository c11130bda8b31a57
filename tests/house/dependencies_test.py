"""docs/dependencies.md names everything that the build, the packages and the page's script ask for."""

import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")


def rows():
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and not set(cells[0]) <= {"-", " "}:
            yield cells


class Dependencies(unittest.TestCase):
    def expect(self, names, where):
        listed = "\n".join(row[0] for row in rows())
        for name in names:
            with self.subTest(name=name, where=where):
                self.assertRegex(listed, rf"`{re.escape(name)}`")

    def test_debian_packages_are_listed(self):
        text = (ROOT / "tools/bootstrap").read_text()
        missing = re.search(r"^missing_packages\(\) \{\n(.*?)^\}", text, re.M | re.S).group(1)
        names = re.findall(r"echo ([\w+-]+)$", missing, re.M) + re.findall(r"%s\\n' ([\w-]+) ", missing)
        names += re.findall(r"wanted\+=\((\w+)\)", text)
        self.assertGreater(len(names), 15)
        self.expect(names, "tools/bootstrap")

    def test_packages_of_pip_are_listed(self):
        text = (ROOT / "pyproject.toml").read_text()
        head = text[: text.index("[tool.scikit-build]")]
        lists = re.findall(r"^(?:requires|dependencies|records|plots|tensorboard|test) = \[(.*?)\]", head, re.M | re.S)
        names = {"nlohmann-json": "nlohmann-json3-dev"}
        found = {re.match(r"[\w-]+", name).group() for one in lists for name in re.findall(r'"([^"]+)"', one)}
        self.assertGreater(len(found), 10)
        self.expect({names.get(name, name) for name in found}, "pyproject.toml")

    def test_packages_of_npm_are_listed(self):
        package = json.loads((ROOT / "gala/report/web/package.json").read_text())
        self.expect([*package["dependencies"], *package["devDependencies"]], "package.json")

    def test_every_row_has_a_version_and_a_licence(self):
        for name, version, _, licence in rows():
            with self.subTest(name=name):
                self.assertTrue(version and licence)

    def test_packages_within_pages_have_licences_that_are_named(self):
        lock = json.loads((ROOT / "gala/report/web/package-lock.json").read_text())
        for path, package in lock["packages"].items():
            if path:
                with self.subTest(package=path):
                    self.assertIn(package["license"], PAGE)
                    self.assertTrue(package.get("integrity", "").startswith("sha512-"))

    def test_the_oldest_versions_are_those_that_are_checked(self):
        oldest = {"GalaTorch.cmake": r"PACKAGE_VERSION VERSION_LESS ([\d.]+)"}
        for name, pattern in oldest.items():
            version = re.search(pattern, (ROOT / "cmake" / name).read_text()).group(1)
            self.assertIn(f"(`torch`) | {version} or newer", PAGE)
        text = (ROOT / "tools/bootstrap").read_text()
        for variable, words in {"oldest_torch": "{} or newer; ", "torch_version": "{} is fetched",
                                "oldest_cmake": "(`cmake`) | {} or newer", "oldest_gcc": "| {} or newer; 14",
                                "numpy_version": "| {} |", "clang_format_version": "| {} |"}.items():
            version = re.search(rf"^{variable}=(\S+)", text, re.M).group(1)
            with self.subTest(variable=variable):
                self.assertIn(words.format(version), PAGE)


if __name__ == "__main__":
    sys.exit(unittest.main())
