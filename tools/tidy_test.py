#!/usr/bin/env python3
"""Every rule of tidy.py complains about a file made to break it, and about nothing in a tree that keeps them."""

import tempfile
import unittest
from pathlib import Path

import tidy

GOOD = {
    "src/README.md": "see [core](core/README.md) and [the net](https://example.org)\n",
    "src/core/README.md": "# core\n",
    "src/core/CMakeLists.txt": "atoll_library(atoll_core SOURCES a.cpp)  # not b.cpp\n",
    "src/core/a.h": "#include <fmt/format.h>\n#include <vector>\n",
    "src/core/a.cpp": '#include "core/a.h"\n#include <spdlog/spdlog.h>\n\nint f() {\n    return 1;\n}\n',
    "tests/README.md": "# tests\n",
    "tests/CMakeLists.txt": "atoll_test(unit a USES atoll_core)\n",
    "tests/unit/a_test.cpp": '#include <gtest/gtest.h>\nGTEST_SKIP() << "no device";\n',
    "tests/golden/numbers.txt": "1\n" * 1000,
    "runs/one/log.txt": "step\n" * 1000,
    "data/texts/notes.md": "[gone](GONE.md)\n",
}

# Name of a file, what it says instead, and the finding.
BAD = [
    ("src/core/a.h", '\n#include "config/run_config.h"\n', "src/core/a.h:2: src/core may not use src/config"),
    ("src/core/a.h", '#include "a.h"\n', 'src/core/a.h:1: "a.h": include files by folder'),
    ("src/core/a.h", "#include <spdlog/spdlog.h>\n", "src/core/a.h:1: <spdlog/spdlog.h> belongs into a .cpp file"),
    ("src/core/a.cpp", "#include <torch/torch.h>\n", "src/core/a.cpp:1: src/core may not use <torch/torch.h>"),
    ("src/core/a.cpp", "//\n" * 501, "src/core/a.cpp:501: 501 lines, at most 500"),
    ("src/core/a.cpp", "int f() {\n" + "    g();\n" * 69 + "}\n", "src/core/a.cpp:1: 71 lines in one function"),
    ("src/core/a.cpp", "class C {\n    int f() {\n" + "        g();\n" * 69 + "    }\n};\n",
     "src/core/a.cpp:2: 71 lines in one function"),
    ("src/core/a.cpp", "\n#if 0\n#endif\n", "src/core/a.cpp:2: dead code"),
    ("src/core/a.cpp", "// TODO: think\n", "src/core/a.cpp:1: TODO: finish it"),
    ("src/core/a.cpp", 'auto x = getenv("X");\n', "src/core/a.cpp:1: getenv: only the programs"),
    ("src/core/a.cpp", "std::thread t;\n", "src/core/a.cpp:1: std::thread: use std::jthread"),
    ("tests/unit/a_test.cpp", "TEST(A, DISABLED_b) {}\n", "tests/unit/a_test.cpp:1: a disabled test"),
    ("tests/unit/a_test.cpp", "GTEST_SKIP();\n", "tests/unit/a_test.cpp:1: a skipped test must say why"),
    ("src/README.md", "\n[gone](core/GONE.md)\n", "src/README.md:2: dead link: core/GONE.md"),
    ("src/core/b.cpp", "int b;\n", "src/core/b.cpp:1: no CMakeLists.txt names this file"),
    ("src/core/CMakeLists.txt", "SOURCES a.cpp\n c.cpp\n", "src/core/CMakeLists.txt:2: no such file: c.cpp"),
    ("tests/CMakeLists.txt", "atoll_test(unit a)\natoll_test(unit b)\n",
     "tests/CMakeLists.txt:2: no such file: unit/b_test.cpp"),
    ("src/config/a.h", "int a;\n", "src/config:1: a folder needs a README.md"),
]


def findings(files):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tidy.Tidy(root).run()


class TidyTest(unittest.TestCase):
    def test_a_tidy_tree_gives_no_findings(self):
        self.assertEqual(findings(GOOD), [])

    def test_every_broken_rule_is_the_one_finding(self):
        for name, text, expected in BAD:
            with self.subTest(expected):
                found = findings(GOOD | {name: text})
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(expected), found[0])

    def test_what_is_used_by_way_of_another_folder_may_be_included(self):
        self.assertIn("kernels", tidy.reachable("src/exchange"))
        self.assertNotIn("src/engine", tidy.reachable("src/cli"))


if __name__ == "__main__":
    unittest.main()
