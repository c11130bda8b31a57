"""Plants mistakes in small trees and expects tools/check-* to find each of them."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run_tool(self, *words):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)

    def expect(self, result, code, *texts):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for text in texts:
            self.assertIn(text, result.stdout + result.stderr)


class CheckIncludes(Tree):
    def setUp(self):
        super().setUp()
        self.write("gala/base/error.h", "#pragma once\n#include <string>\nnamespace gala { std::string f(); }\n")
        self.write("gala/model/model.h", '#pragma once\n#include "gala/base/error.h"\n')

    def check(self):
        return self.run_tool(sys.executable, ROOT / "tools/check-includes", self.root)

    def test_passes_a_tree_in_order(self):
        self.write("tests/base/x_test.cpp", '#include "gala/model/model.h"\n')
        self.expect(self.check(), 0, "3 files, 0 problems")

    def test_finds_an_include_against_the_flow(self):
        self.write("gala/base/file.cpp", '#include "gala/model/model.h"\n')
        self.expect(self.check(), 1, "gala/base/file.cpp:1", "model comes after base")

    def test_finds_an_include_of_the_program(self):
        self.write("cli/main.h", "#pragma once\n")
        self.write("gala/model/x.cpp", '#include "cli/main.h"\n')
        self.expect(self.check(), 1, "may not include cli/")

    def test_finds_a_header_that_is_not_there(self):
        self.write("gala/model/x.cpp", '#include "gala/base/eror.h"\n')
        self.expect(self.check(), 1, "gala/base/eror.h does not exist")

    def test_finds_an_include_without_its_folder(self):
        self.write("gala/model/x.cpp", '#include "model.h"\n')
        self.expect(self.check(), 1, 'write "gala/model/model.h"')

    def test_finds_a_folder_without_a_place(self):
        self.write("gala/misc/x.cpp", "\n")
        self.expect(self.check(), 1, "gala/misc has no place")

    def test_finds_a_missing_pragma_once(self):
        self.write("gala/base/x.h", "int x();\n")
        self.expect(self.check(), 1, "gala/base/x.h: #pragma once is missing")

    def test_finds_a_header_that_leans_on_others(self):
        self.write("gala/base/x.h", "#pragma once\n// std::map<int, int> is fine here\nstd::vector<int> x();\n")
        result = self.check()
        self.expect(result, 1, "gala/base/x.h:3: uses std::vector without <vector>")
        self.assertNotIn("std::map", result.stdout)

    def test_accepts_a_type_that_comes_with_a_project_header(self):
        self.write("gala/model/x.h", '#pragma once\n#include "gala/model/model.h"\nstd::string x();\n')
        self.expect(self.check(), 0)

    def test_fails_on_an_empty_tree(self):
        shutil.rmtree(self.root / "gala")
        self.expect(self.check(), 1, "0 files")


class CheckDocs(Tree):
    def check(self, *more):
        return self.run_tool(sys.executable, ROOT / "tools/check-docs", "--root", self.root, *more)

    def program(self):
        path = self.write("bin/gala", "#!/bin/sh\n"
                          "case \"$1\" in adapt) echo '  --loss SPEC';; *) echo 'Commands:';"
                          " echo '  adapt    adapts'; echo; echo 'Examples:'; echo '  gala adopt';; esac\n")
        os.chmod(path, path.stat().st_mode | stat.S_IXUSR)
        return "--program", path

    def test_passes_a_clean_page(self):
        self.write("Makefile", "test:\n")
        self.write("docs/a.md", "# A page\n[up](../README.md#two-commands) [self](#a-page)\n")
        self.write("README.md", "# Two `commands`\n[a](docs/a.md)\n```sh\nmake test\n"
                   "gala adapt --loss shot \\\n  --loss=x && gala adapt # --not-an-option\n```\n")
        self.expect(self.check(*self.program()), 0, "0 problems")

    def test_finds_a_dead_link(self):
        self.write("docs/a.md", "\n[x](b.md)\n")
        self.expect(self.check(), 1, "docs/a.md:2: b.md does not exist")

    def test_finds_a_dead_anchor(self):
        self.write("a.md", "# One\n[x](#two)\n")
        self.expect(self.check(), 1, "a.md:2: a.md has no heading #two")

    def test_leaves_code_alone(self):
        self.write("a.md", "`[x](y)`\n```cpp\n[x](y)\n```\n")
        self.expect(self.check(), 0)

    def test_finds_an_unknown_command(self):
        self.write("README.md", "```sh\ngala adopt\n```\n")
        self.expect(self.check(*self.program()), 1, "README.md:2: gala knows no command adopt (known: adapt)")

    def test_finds_an_unknown_option(self):
        self.write("README.md", "```sh\nOMP_NUM_THREADS=1 gala adapt \\\n  --lossy x\n```\n")
        self.expect(self.check(*self.program()), 1, "README.md:2: gala adapt knows no option --lossy")

    def test_finds_an_option_that_is_half_a_word(self):
        self.write("README.md", "```sh\ngala adapt --los x\n```\n")
        self.expect(self.check(*self.program()), 1, "knows no option --los")

    def test_finds_an_unknown_target(self):
        self.write("Makefile", "test:\n")
        self.write("README.md", "```sh\nmake tests\n```\n")
        self.expect(self.check(), 1, "the Makefile has no target tests")

    def test_finds_a_path_of_a_machine(self):
        self.write("gala/x.cpp", 'open("' + "/home" + '/anna/x");\n')
        self.expect(self.check(), 1, "gala/x.cpp:1: a path of one machine")

    def test_finds_a_path_of_a_machine_in_a_large_store(self):
        records = '{"row": "x"}\n' * 100_000 + '{"command": "gala run --store ' + "/home" + '/anna/x"}\n'
        self.write("results/records.jsonl", records)
        self.expect(self.check(), 1, "results/records.jsonl:100001: a path of one machine")

    def test_finds_the_address_of_a_registry(self):
        self.write("CMakeLists.txt", "# https" + "://packages.example.com/simple\n")
        self.expect(self.check(), 1, "CMakeLists.txt:1", "packages.example.com")

    def test_finds_a_block_that_differs_from_its_file(self):
        self.write("examples/embed.cpp", "// A comment.\nint main() {\n}\n")
        self.write("a.md", "<!-- from examples/embed.cpp -->\n```cpp\nint main() {\n}\n```\n")
        self.expect(self.check(), 0)
        self.write("a.md", "\n<!-- from examples/embed.cpp -->\n```cpp\nint main() { }\n```\n")
        self.expect(self.check(), 1, "a.md:2: the block differs from examples/embed.cpp")

    def test_finds_a_promise(self):
        self.write("a.md", "Speed: " + "coming" + " soon\n")
        self.expect(self.check(), 1, "a promise")


class CheckFormat(Tree):
    def setUp(self):
        super().setUp()
        formatter = ROOT / ".venv/bin/clang-format"
        if not formatter.exists():
            self.skipTest("no .venv: run make deps")
        (self.root / "tools").mkdir()
        shutil.copy(ROOT / "tools/check-format", self.root / "tools")
        shutil.copy(ROOT / ".clang-format", self.root)
        (self.root / ".venv").symlink_to(ROOT / ".venv")
        subprocess.run(["git", "init", "-q", self.root], check=True)

    def test_passes_formatted_code(self):
        self.write("a.cpp", "int x = 1;\n")
        self.expect(self.run_tool(self.root / "tools/check-format"), 0, "1 files, 0 problems")

    def test_finds_and_mends_unformatted_code(self):
        path = self.write("a.cpp", "int   x=1;\n")
        self.expect(self.run_tool(self.root / "tools/check-format"), 1, "a.cpp: ", "make format")
        self.expect(self.run_tool(self.root / "tools/check-format", "--fix"), 0)
        self.assertEqual(path.read_text(), "int x = 1;\n")
        self.expect(self.run_tool(self.root / "tools/check-format"), 0)


if __name__ == "__main__":
    unittest.main()
