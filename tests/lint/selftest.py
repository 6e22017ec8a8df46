"""The lint programs find what they are for, in small trees made for it, and stay silent otherwise."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import sizes  # noqa: E402
import tree   # noqa: E402


def run(rule: str, sources: dict[str, str]) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, "-B", str(HERE / f"{rule}.py"), folder], capture_output=True, text=True,
                              env={**os.environ, "GIT_CEILING_DIRECTORIES": "/"}, check=False)
        return done.returncode, done.stdout + done.stderr


class IncludeRules(unittest.TestCase):
    def refused(self, name: str, *includes: str) -> str:
        status, out = run("include_rules", {name: "".join(f"#include {include}\n" for include in includes)})
        self.assertEqual(status, 1, out)
        return out

    def accepted(self, name: str, *includes: str) -> None:
        status, out = run("include_rules", {name: "".join(f"#include {include}\n" for include in includes)})
        self.assertEqual(status, 0, out)

    def test_rooms(self):
        self.accepted("src/core/a.cpp", '"core/b.hpp"', '"wire/c.hpp"', "<vector>")
        self.accepted("src/net/a.cpp", '"os/fd.hpp"', "<asio.hpp>", "<sys/socket.h>")
        self.accepted("src/main.cpp", '"cli/options.hpp"', '"run/driver.hpp"', '"net/loop.hpp"')
        self.assertIn("main.cpp is free of the operating system", self.refused("src/main.cpp", "<net/if.h>"))
        self.assertIn("core must not include os", self.refused("src/core/a.cpp", '"os/fd.hpp"'))
        self.assertIn("net must not include os", self.refused("src/net/a.cpp", '"os/process.hpp"'))
        self.assertIn("net must not include plan", self.refused("src/net/a.cpp", '"plan/launch_plan.hpp"'))
        self.assertIn("cli must not include run", self.refused("src/cli/a.cpp", '"run/driver.hpp"'))
        self.assertIn("worker must not include core", self.refused("src/worker/a.cpp", '"core/agent.hpp"'))
        self.assertIn("write the room", self.refused("src/core/a.cpp", '"agent.hpp"'))
        self.assertIn("no such room", self.refused("src/misc/a.cpp", "<vector>"))

    def test_operating_system(self):
        self.accepted("src/os/a.cpp", "<unistd.h>")
        self.assertIn("free of the operating system", self.refused("src/wire/a.cpp", "<unistd.h>"))
        self.assertIn("free of the operating system", self.refused("src/base/a.cpp", "<sys/types.h>"))

    def test_libraries(self):
        self.accepted("src/wire/agent_message.cpp", "<nlohmann/json.hpp>")
        self.assertIn("wire must not use nlohmann", self.refused("src/wire/other.cpp", "<nlohmann/json.hpp>"))
        self.assertIn("os must not use asio", self.refused("src/os/a.cpp", "<asio/io_context.hpp>"))
        self.assertIn("must not use spdlog", self.refused("src/net/a.cpp", "<spdlog/spdlog.h>"))
        self.assertIn("must not use gloo", self.refused("include/ddlaunch/store.hpp", "<gloo/context.h>"))
        self.accepted("include/ddlaunch/gloo.hpp", "<gloo/context.h>")

    def test_one_file_only(self):
        one = {"src/cli/options.cpp": "#include <CLI/CLI.hpp>\n"}
        self.assertEqual(run("include_rules", one)[0], 0)
        status, out = run("include_rules", {**one, "src/cli/second.cpp": "#include <CLI/App.hpp>\n"})
        self.assertEqual(status, 1)
        self.assertIn("cli: CLI is used in 2 files", out)

    def test_pure(self):
        status, out = run("include_rules", {"src/core/a.cpp": "// steady_clock\nauto t = std::chrono::steady_clock::now();\n"})
        self.assertEqual(status, 1)
        self.assertIn("a.cpp:2: steady_clock", out)


class Sizes(unittest.TestCase):
    def lengths(self, code: str) -> list[tuple[int, int]]:
        return sizes.functions(tree.bare(code))

    def test_functions(self):
        self.assertEqual(self.lengths("namespace a {\nint f(int x)\n{\n  if (x) {\n  }\n  return 1;\n}\n}\n"), [(2, 6)])
        self.assertEqual(self.lengths("struct A {\n int f() {\n  return 1;\n }\n int b;\n};\nint g() { return 2; }\n"),
                         [(2, 3), (7, 1)])

    def test_initialiser_list_is_header(self):
        self.assertEqual(self.lengths("X::X()\n    : a_{1},\n      b_{2} {\n  run();\n}\nint h() {\n}\n"), [(1, 5), (6, 2)])

    def test_literals_are_not_code(self):
        self.assertEqual(self.lengths('void f() {\n  g("}{", \'{\', R"(}})", 1\'000);  // }\n}\n'), [(1, 3)])
        self.assertEqual(self.lengths("enum class E : int { kA };\nconst int t[] = {\n 1,\n 2};\nvoid f() {\n}\n"), [(5, 2)])

    def test_limits(self):
        body = "  x();\n"
        self.assertEqual(run("sizes", {"src/os/a.cpp": "void f() {\n" + body * 68 + "}\n"})[0], 0)
        self.assertIn("function of 71 lines", run("sizes", {"src/os/a.cpp": "void f() {\n" + body * 69 + "}\n"})[1])
        self.assertEqual(run("sizes", {"src/os/a.cpp": "\n" * 400})[0], 0)
        self.assertIn("401 lines", run("sizes", {"src/os/a.cpp": "\n" * 401})[1])
        self.assertIn("60 lines, at most 59", run("sizes", {"src/main.cpp": "\n" * 60})[1])


class Texts(unittest.TestCase):
    def test_notes_and_paths(self):
        self.assertIn("README.md:2", run("texts", {"README.md": "fine\nTO" + "DO: later\n"})[1])
        self.assertIn("one machine", run("texts", {"tests/a.py": 'open("/ho' + 'me/me/x")\n'})[1])
        self.assertEqual(run("texts", {"tests/run": "d=$(mktemp -d /tmp/x.XXXXXX)\nls /usr/bin\n"})[0], 0)


class Headers(unittest.TestCase):
    def test_self_contained(self):
        self.assertEqual(run("headers", {"include/ddlaunch/a.hpp": "#pragma once\n#include <string>\nstd::string f();\n"})[0], 0)
        self.assertIn("does not compile alone as c++20",
                      run("headers", {"src/os/a.hpp": "#pragma once\nstd::string f();\n"})[1])

    def test_public_is_cxx17_and_c99(self):
        self.assertIn("as c++17", run("headers", {"include/ddlaunch/a.hpp": "#pragma once\n#include <concepts>\n"
                                                  "template <std::integral T> T f();\n"})[1])
        self.assertIn("as c99", run("headers", {"include/ddlaunch/d.h": "#ifndef D\n#define D\nint f(bool b);\n#endif\n"})[1])


class TestLines(unittest.TestCase):
    def test_floor(self):
        source, test = "int x;\n" * 10, "int y;\n"
        low = {"src/core/a.cpp": source, "tests/unit/core/a_test.cpp": test * 9, "tests/integration/a.py": test * 9}
        self.assertIn("core: 0.90", run("test_lines", low)[1])
        self.assertEqual(run("test_lines", {**low, "tests/scenario/a.txt": "die n1\n"})[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
