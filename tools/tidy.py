#!/usr/bin/env python3
"""Checks what no compiler checks: which folder may include which, sizes, dead links and files, disabled tests.

Usage: tools/tidy.py [ROOT]. Prints one line per finding, "file:line: rule"; exit code 1 if there are any.
"""

import re
import sys
from pathlib import Path

FILE_LINES = 500
FUNCTION_LINES = 70

# Which folders of ours a folder may include, beside itself and what those may use in turn.
USES = {
    "src/core": [],
    "src/config": ["src/core"],
    "kernels": ["src/core"],
    "comm/island": ["src/core"],
    "comm/site": ["src/core"],
    "src/data": ["src/core", "src/config"],
    "src/layout": ["src/core"],
    "src/program": ["src/core", "src/layout"],
    "src/model": ["src/core", "src/config", "src/layout", "src/program"],
    "src/codec": ["src/core", "kernels"],
    "src/outer": ["src/core", "kernels", "src/codec"],
    "src/rounds": ["src/core"],
    "src/exchange": ["src/core", "src/rounds", "src/codec", "comm/site"],
    "src/coordinator": ["src/core", "src/config", "src/outer", "src/rounds", "comm/site"],
    "src/checkpoint": ["src/core", "src/layout"],
    "src/metrics": ["src/core"],
    "src/simulator": ["src/core", "src/program", "src/layout", "src/model", "src/outer", "src/rounds"],
    "src/engine": ["src/core", "src/program", "comm/island", "kernels"],
    "src/island": ["src/engine", "src/model", "src/data", "src/layout", "src/checkpoint"],
}
WITH_TORCH = ["src/engine", "src/island", "src/worker"]
USES["src/worker"] = list(USES)
USES["src/cli"] = [folder for folder in USES if folder not in WITH_TORCH]

# Third-party headers: who may include them at all, and who in headers too (the folder that wraps them).
# A prefix that isn't listed (the standard library, the system) is free.
EVERYBODY = list(USES)
THIRD_PARTY = {
    "fmt/": (EVERYBODY, EVERYBODY),
    "nlohmann/": (EVERYBODY, []),
    "spdlog/": (["src/core"], []),
    "sodium": (["src/core", "comm/site"], []),
    "xxhash": (["src/core"], []),
    "toml++/": (["src/config"], []),
    "CLI/": (["src/cli", "src/worker"], ["src/cli"]),
    "zstd": (["src/data", "src/codec"], []),
    "zlib": (["src/data"], []),
    "zmq": (["comm/site", "src/coordinator"], ["comm/site"]),
    "gloo/": (["comm/island", "comm/site"], ["comm/island"]),
    "nccl": (["comm/island"], ["comm/island"]),
    "cuda": (["kernels", "comm/island", "src/engine"], ["kernels", "src/engine"]),
    "omp.h": (["kernels", *WITH_TORCH], ["kernels"]),
    "hwloc": (["src/engine", "src/island", "src/worker", "src/cli"], []),
    "sqlite3": (["src/coordinator"], []),
    "SQLiteCpp/": (["src/coordinator"], []),
    "httplib": (["src/coordinator", "src/metrics", "src/cli"], []),
    "torch/": (WITH_TORCH, WITH_TORCH),
    "ATen/": (WITH_TORCH, WITH_TORCH),
    "c10/": (WITH_TORCH, WITH_TORCH),
    "gtest/": ([], []),
    "rapidcheck": ([], []),
    "benchmark/": (["kernels"], []),
}

# (pattern, where, what to do instead). Comments count too.
BANNED = [
    (r"\b(TODO|FIXME|XXX|HACK)\b", "", "finish it, or leave it out"),
    (r"(?<![\w.])/work/", "", "a path of one machine"),
    (r"\bgetenv\b", "src/(?!cli/|worker/)|comm/|kernels/", "only the programs read the environment; pass a value"),
    (r"\bstd::thread\b", "src/|comm/|kernels/", "use std::jthread, which its owner's destructor joins"),
    (r"\bgoto\b", "src/|comm/|kernels/|tests/.*\\.(cpp|h)$", "use functions and destructors"),
    (r"\b(printf|fprintf|sprintf)\s*\(", "src/|comm/|kernels/", "use fmt"),
    (r"\bstd::(cout|cerr)\b", "src/|comm/|kernels/", "use fmt::print in src/cli, Log elsewhere"),
    (r"\b(std::)?rand\s*\(\)|\bstd::mt19937", "src/|comm/|kernels/", "use core/random.h: a pure function of a seed"),
    (r"#\s*if(def)?\s+.*ATOLL_CUDA", "src/", "choose back ends by file, in kernels and comm/island"),
    (r"-ffast-math|-ffinite-math-only", "", "numbers are exact"),
]

SKIPPED_FOLDERS = {".git", "build", "__pycache__", ".cache", ".venv"}
SKIPPED_AT_THE_TOP = {"runs", "data"}  # what users make beside the sources
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
TEXTS = SOURCES | {".py", ".md", ".txt", ".cmake", ".toml", ".sh", ""}


class Tidy:
    def __init__(self, root):
        self.root = root
        self.findings = []
        self.files = sorted(path for path in root.rglob("*") if path.is_file() and self.is_ours(path))

    def is_ours(self, path):
        parts = path.relative_to(self.root).parts
        return parts[0] not in SKIPPED_AT_THE_TOP and not SKIPPED_FOLDERS.intersection(parts)

    def report(self, path, line, rule):
        self.findings.append(f"{path.relative_to(self.root)}:{line}: {rule}")

    def lines(self, path):
        try:
            return path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            return []  # binary

    def run(self):
        for path in self.files:
            if path.suffix not in TEXTS or self.is_golden_data(path):
                continue
            lines = self.lines(path)
            self.check_size(path, lines)
            self.check_banned(path, lines)
            if path.suffix in SOURCES:
                self.check_includes(path, lines)
                self.check_functions(path, lines)
                self.check_disabled(path, lines)
            if path.suffix == ".md":
                self.check_links(path, lines)
        self.check_readmes()
        self.check_cmake()
        return self.findings

    def is_golden_data(self, path):
        return path.relative_to(self.root).parts[:2] == ("tests", "golden") and path.suffix not in SOURCES

    def check_size(self, path, lines):
        if len(lines) > FILE_LINES and path.name != "LICENSE":
            self.report(path, FILE_LINES + 1, f"{len(lines)} lines, at most {FILE_LINES} are allowed: split by idea")

    def check_banned(self, path, lines):
        if path == Path(__file__).resolve() or path.name == "tidy_test.py":
            return
        name = path.relative_to(self.root).as_posix()
        for pattern, where, remedy in BANNED:
            if not re.match(where, name):
                continue
            for number, line in enumerate(lines, 1):
                found = re.search(pattern, line)
                if found:
                    self.report(path, number, f"{found.group(0).strip()}: {remedy}")

    # --- includes ---

    def check_includes(self, path, lines):
        folder = self.folder_of(path)
        if folder is None:
            return
        for number, line in enumerate(lines, 1):
            ours = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            theirs = re.match(r"\s*#\s*include\s+<([^>]+)>", line)
            if ours:
                self.check_own_include(path, number, folder, ours.group(1))
            elif theirs:
                self.check_third_party(path, number, folder, theirs.group(1))

    def folder_of(self, path):
        name = path.relative_to(self.root).as_posix()
        return next((folder for folder in USES if name.startswith(folder + "/")), None)

    def check_own_include(self, path, number, folder, header):
        names = (header, "src/" + header)
        target = next((known for known in USES if any(name.startswith(known + "/") for name in names)), None)
        if target is None:
            self.report(path, number, f'"{header}": include files by folder, as in "core/check.h"')
        elif target != folder and target not in reachable(folder):
            self.report(path, number, f"{folder} may not use {target}")

    def check_third_party(self, path, number, folder, header):
        for prefix, (sources, headers) in THIRD_PARTY.items():
            if not header.startswith(prefix):
                continue
            if folder not in sources:
                self.report(path, number, f"{folder} may not use <{header}>")
            elif path.suffix in (".h", ".cuh") and folder not in headers:
                self.report(path, number, f"<{header}> belongs into a .cpp file")

    # --- functions and tests ---

    def check_functions(self, path, lines):
        """A body ends at a lone brace; it began at the last line before it with the same indent."""
        begins = {0: 0, 4: 0}  # indent → line number where something last began
        for number, line in enumerate(lines, 1):
            text = line.strip()
            indent = len(line) - len(line.lstrip())
            if indent not in begins or not text or text.startswith(("#", "//")):
                continue
            if text == "}":
                length = number - begins[indent] + 1
                if length > FUNCTION_LINES:
                    self.report(path, begins[indent], f"{length} lines in one function, at most {FUNCTION_LINES}")
            else:
                begins[indent] = number

    def check_disabled(self, path, lines):
        for number, line in enumerate(lines, 1):
            if "DISABLED_" in line:
                self.report(path, number, "a disabled test: mend it or remove it")
            if re.search(r"GTEST_SKIP\(\)\s*(;|$)", line):
                self.report(path, number, "a skipped test must say why: GTEST_SKIP() << reason")
            if re.match(r"\s*#\s*if\s+(0|false)\b", line):
                self.report(path, number, "dead code: remove it, git remembers")

    # --- files that belong together ---

    def check_links(self, path, lines):
        for number, line in enumerate(lines, 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:|#", target):
                    continue
                if not (path.parent / target.split("#")[0]).exists():
                    self.report(path, number, f"dead link: {target}")

    def check_readmes(self):
        for folder in [*USES, "src", "configs", "tools", "tests"]:
            where = self.root / folder
            if where.is_dir() and not (where / "README.md").exists():
                self.report(where, 1, "a folder needs a README.md: what lives here, what may not")

    def check_cmake(self):
        named = set()
        for path in self.files:
            if path.name == "CMakeLists.txt":
                named |= self.check_cmake_file(path)
        for path in self.files:
            if path.suffix in {".cpp", ".cu"} and path not in named:
                self.report(path, 1, "no CMakeLists.txt names this file")

    def check_cmake_file(self, path):
        named = set()
        for number, line in enumerate(self.lines(path), 1):
            code = line.split("#")[0]
            sources = re.findall(r"[\w./-]+\.(?:cpp|cu)\b", code)
            test = re.match(r"\s*atoll_test\((\w+) (\w+)", code)
            if test and "SOURCES" not in code:
                sources.append(f"{test.group(1)}/{test.group(2)}_test.cpp")
            for source in sources:
                file = (path.parent / source).resolve()
                named.add(file)
                if not file.exists():
                    self.report(path, number, f"no such file: {source}")
        return named


def reachable(folder):
    """All folders that `folder` may use, directly or not."""
    found = set()
    waiting = [folder]
    while waiting:
        for used in USES[waiting.pop()]:
            if used not in found:
                found.add(used)
                waiting.append(used)
    return found


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    findings = Tidy(root).run()
    print("\n".join(findings) if findings else "tidy: nothing to complain about")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
