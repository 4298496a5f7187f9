#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The house style, as a test: what a formatter and a compiler cannot see.

    tools/tidy.py [ROOT]        checks every source file of the project; prints path:line: what is wrong
    tools/tidy.py --self-test   checks the checks

Each rule is a function from a File to (line, message) pairs; RULES lists them. A file that must be longer than the limit
says so in its first lines: "tidy: long because REASON".
"""
import re
import subprocess
import sys
from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 60
TEST_CASE_LINES = 100  # a test case may hold several sections

CPP = {".h", ".cpp", ".c"}
SCRIPTS = {".py", ".sh", ".in", ".build"}

# The layers, lowest first. A file includes its own layer and lower ones only.
LAYERS = {
    "queue/": 0,
    "wire/packet/": 1,
    "wire/counters.h": 2,
    "wire/queue_pair.h": 2,
    "wire/addressing.h": 2,
    "wire/qp/": 3,
    "wire/rc/": 4,
    "wire/uc/": 4,
    "wire/ud/": 4,
    "wire/": 5,
    "wire/io/": 6,
    "provider/": 7,
    "cm/": 8,
}
SIBLINGS = ("wire/rc/", "wire/uc/", "wire/ud/")  # of one rank, and blind to each other
PACKET_SEES = {"queue/guarded_copy.h", "queue/types.h", "queue/result.h", "queue/check.h"}
# cm/ is another library than the engine's: beside its own files it sees what is pure, and the private C interface.
CM_SEES = ("cm/", "wire/packet/", "queue/types.h", "queue/deadlines.h", "queue/event_list.h", "queue/result.h", "queue/check.h", "queue/mutex.h",
           "queue/rng.h", "provider/private.h")
TOOLS_SEE = ("tools/", "wire/packet/", "wire/io/fault_options.h", "queue/types.h", "queue/result.h", "queue/check.h")

IO_FOLDERS = ("wire/io/", "provider/", "cm/", "tools/", "tests/", "examples/")
VERBS_OUTSIDE = ("queue/work_request", "queue/completion")

CLOCKS = re.compile(r"\b(steady_clock|system_clock|high_resolution_clock|clock_gettime|gettimeofday|getrandom"
                    r"|random_device|mt19937\w*|s?rand|drand48|sleep_for|sleep_until|usleep|nanosleep)\b|\bsleep\s*\(")
SLEEPS = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|\bsleep\s*\(")
IO_HEADERS = re.compile(r"<(boost/asio|sys/socket\.h|sys/epoll\.h|netinet/|linux/(?!futex)|thread>)")
NAMES = re.compile(r"(?<![\w.>:])(get|handle|do)_\w+(?=\s*\()|\b\w+(Manager|Utils?)\b|\b(Manager|Utils?)\b")
TOO_NEW = re.compile(r"\bstd::(format|expected|source_location|views|print|println|move_only_function)\b")
LEFTOVERS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
LAMBDA = re.compile(r"^ {4,}.*\[[^\]]*\]\(.*\{$")  # counts with the function that it stands in, or is a row of a table
CONTROL = re.compile(r"^\s*(\}\s*)?(if|else|for|while|switch|do|try|catch|namespace|extern|return|case|struct|class|union"
                     r"|enum)\b")


class File:
    """A source file: its path from the root, its lines, and the same lines with comments and literals blanked."""

    def __init__(self, path, text):
        self.path = path
        self.suffix = Path(path).suffix
        self.lines = text.splitlines()
        self.code = blank_comments_and_literals(text).splitlines() if self.suffix in CPP else self.lines

    def is_in(self, *folders):
        return self.path.startswith(folders)

    def includes(self):
        for number, line in enumerate(self.lines, 1):
            found = re.match(r'\s*#\s*include\s+([<"])([^>"]+)', line)
            if found:
                yield number, found.group(1) == '"', found.group(2)

    def search(self, pattern, lines=None):
        for number, line in enumerate(self.code if lines is None else lines, 1):
            found = pattern.search(line)
            if found:
                yield number, found.group(0).strip()


def blank_comments_and_literals(text):
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
                         re.S)
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group(0)), text)


def layer_of(path):
    """The longest entry of LAYERS that the path starts with, or None."""
    entries = [entry for entry in LAYERS if path.startswith(entry)]
    return max(entries, key=len) if entries else None


def check_licence(file):
    if not any("SPDX-License-Identifier: MIT" in line for line in file.lines[:4]):
        yield 1, "no SPDX-License-Identifier line on top"


def check_length(file):
    excused = any("tidy: long because" in line for line in file.lines[:30])
    if len(file.lines) > FILE_LINES and not excused:
        yield FILE_LINES, f"{len(file.lines)} lines, more than {FILE_LINES}: split it by noun"


def check_leftovers(file):
    if file.path != "tools/tidy.py":
        for number, word in file.search(LEFTOVERS, file.lines):
            yield number, f"{word} left behind: do it or write an issue"


def allowed_include(path, included):
    """None if the file at `path` may include the project's file `included`, else why not."""
    if path.startswith("tests/"):
        return None
    if included.startswith("tests/"):
        return "nobody sees tests/"
    target = layer_of(included)
    if path.startswith("examples/"):
        return "an example is an ordinary program and sees no file of ours"
    if path.startswith("tools/"):
        return None if included.startswith(TOOLS_SEE) else "tools/ sees wire/packet only"
    own = layer_of(path)
    if own is None or target is None:
        return "a path from the root, into a layer, is wanted"
    if own == "cm/":
        return None if included.startswith(CM_SEES) else "cm/ sees provider/private.h, wire/packet and pure parts of queue/"
    if own == "wire/packet/" and target == "queue/":
        return None if included in PACKET_SEES else "wire/packet takes only guarded_copy.h, types.h, result.h, check.h from queue/"
    if LAYERS[target] > LAYERS[own]:
        return f"{own} is below {target}: a layer looks down, never up"
    if own in SIBLINGS and target in SIBLINGS and own != target:
        return f"{own} and {target} do not see each other"
    return None


def check_includes(file):
    if file.suffix not in CPP:
        return
    for number, quoted, name in file.includes():
        if quoted:
            why = allowed_include(file.path, name)
            if why:
                yield number, f'"{name}": {why}'
        elif IO_HEADERS.match(f"<{name}>") and not file.is_in(*IO_FOLDERS):
            yield number, f"<{name}>: sockets, threads and epoll are for wire/io and above"
        elif name.startswith(("infiniband/", "rdma/")) and not file.is_in(*IO_FOLDERS, *VERBS_OUTSIDE):
            yield number, f"<{name}> is for provider/, cm/ and two headers of queue/"


def check_chance_and_time(file):
    if file.suffix not in CPP:
        return
    if file.is_in("tests/"):
        for number, word in file.search(SLEEPS):
            yield number, f"{word}: a test waits for a condition, it does not sleep"
    elif not file.is_in(*IO_FOLDERS):
        for number, word in file.search(CLOCKS):
            yield number, f"{word}: time is an argument and chance a seeded Rng outside wire/io"


def check_names(file):
    if file.suffix not in CPP or file.is_in("tests/", "examples/"):
        return
    for number, word in file.search(NAMES):
        if not word.startswith(("get_if", "get_executor")):
            yield number, f"{word}: no get_, handle_, do_, Manager or Util in names"
    if file.is_in("wire/") and not file.is_in("wire/io/"):
        for number, word in file.search(re.compile(r"\b(ibv|rdma|IBV|RDMA)_\w+")):
            yield number, f"{word}: wire/ names nothing of verbs"


def check_floor(file):
    if file.suffix in CPP:
        for number, word in file.search(TOO_NEW):
            yield number, f"{word} is not in both g++ 12 and clang 14"


def check_functions(file):
    """Google style as clang-format writes it: a body opens at the end of a line and closes at its first line's indent."""
    if file.suffix not in CPP:
        return
    start = None
    for number, line in enumerate(file.code, 1):
        if start is None:
            if line.rstrip().endswith("{") and not LAMBDA.search(line):
                declaration = header(file, number)
                if ")" in declaration and not CONTROL.match(declaration) and indent_of(declaration) <= 4:
                    start, start_indent, is_test = number, indent_of(declaration), "TEST_CASE" in declaration
        elif line.strip().startswith("}") and indent_of(line) <= start_indent:
            limit = TEST_CASE_LINES if is_test else FUNCTION_LINES
            if number - start + 1 > limit:
                yield start, f"a function of {number - start + 1} lines, more than {limit}"
            start = None


def header(file, number):
    """The line where the body opens and those above it that belong to the same declaration, as one text."""
    first = number
    while first > 1 and file.code[first - 2].strip() and not re.search(r"[;{}:]\s*$", file.code[first - 2]):
        first -= 1
    return "\n".join(file.code[first - 1:number])


def indent_of(text):
    return len(text) - len(text.lstrip())


def check_contracts(file):
    """A header says what it holds before it declares anything, and so does a test file (goal and method)."""
    is_test = file.is_in("tests/") and file.path.endswith("_test.cpp")
    if file.suffix != ".h" and not is_test:
        return
    for line in file.lines[:40]:
        text = line.strip()
        if re.match(r"(//|/\*|\*)", text) and "SPDX" not in text and len(text) > 12:
            return
        if re.match(r"(TEST_CASE|class|struct|enum|int|void)\b", text):
            break
    yield 1, ("no comment on top: a test file opens with its goal and method" if is_test else
              "no comment on top: a header opens with what it holds, for whom, and on which thread")


def check_privacy(file):
    if file.suffix in CPP:
        for number, _ in file.search(re.compile(r"#\s*define\s+(private|protected)\b|^\s*friend\s+(class|struct)\s+\w*Test")):
            yield number, "tests use what a class shows: no friends, no redefined keywords"


RULES = [check_licence, check_length, check_leftovers, check_includes, check_chance_and_time, check_names, check_floor,
         check_functions, check_contracts, check_privacy]


def is_checked(path):
    return (Path(path).suffix in CPP | SCRIPTS or path in (".ci/run", "tools/check", "tools/demo")) and \
        not path.startswith(("build", ".")) or path == ".ci/run"


def paths_of(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True)
    if listed.returncode == 0:
        found = listed.stdout.decode().split("\0")
    else:  # a tarball
        found = [str(path.relative_to(root)) for path in Path(root).rglob("*") if path.is_file()]
    return sorted(path for path in found if path and is_checked(path) and Path(root, path).is_file())


def complaints(file):
    return [(number, message) for rule in RULES for number, message in rule(file)]


def main(root):
    count = 0
    paths = paths_of(root)
    for path in paths:
        for number, message in complaints(File(path, Path(root, path).read_text())):
            print(f"{path}:{number}: {message}")
            count += 1
    print(f"tidy: {len(paths)} files, {count} complaints")
    return 1 if count else 0


SPDX = "// SPDX-License-Identifier: MIT\n"
DOC = "// What it holds, for whom.\n"
# path, text, a part of the one complaint expected ("" for none)
CASES = [
    ("queue/a.cpp", "int x;\n", "SPDX"),
    ("queue/a.h", SPDX + "int x;\n", "no comment on top"),
    ("queue/a.h", SPDX + DOC + "int x;\n", ""),
    ("queue/a.cpp", SPDX + '#include "wire/packet/bth.h"\n', "never up"),
    ("wire/rc/a.cpp", SPDX + '#include "wire/queue_pair.h"\n#include "queue/ring.h"\n', ""),
    ("wire/rc/a.cpp", SPDX + '#include "wire/engine.h"\n', "never up"),
    ("wire/rc/a.cpp", SPDX + '#include "wire/ud/gsi.h"\n', "do not see each other"),
    ("wire/packet/a.cpp", SPDX + '#include "queue/ring.h"\n', "takes only guarded_copy.h"),
    ("wire/a.cpp", SPDX + '#include "wire/io/udp_port.h"\n', "never up"),
    ("cm/a.cpp", SPDX + '#include "provider/private.h"\n#include "wire/packet/mad.h"\n', ""),
    ("cm/a.cpp", SPDX + '#include "provider/runtime.h"\n', "cm/ sees"),
    ("tools/a.cpp", SPDX + '#include "wire/engine.h"\n', "wire/packet only"),
    ("wire/a.cpp", SPDX + '#include "engine.h"\n', "a path from the root"),
    ("wire/a.cpp", SPDX + "#include <sys/epoll.h>\n", "wire/io and above"),
    ("wire/io/a.cpp", SPDX + "#include <sys/epoll.h>\n", ""),
    ("wire/a.cpp", SPDX + "#include <infiniband/verbs.h>\n", "provider/, cm/"),
    ("wire/a.cpp", SPDX + "auto now = std::chrono::steady_clock::now();\n", "time is an argument"),
    ("wire/a.cpp", SPDX + "// steady_clock would be wrong here\nconst char* s = \"rand\";\n", ""),
    ("wire/io/a.cpp", SPDX + "auto now = std::chrono::steady_clock::now();\n", ""),
    ("tests/a/b_test.cpp", SPDX + DOC + "void f() { usleep(1); }\n", "does not sleep"),
    ("queue/a.cpp", SPDX + "int get_depth();\n", "get_depth"),
    ("provider/a.cpp", SPDX + "int ibv_get_depth();\nauto* p = std::get_if<int>(&v);\n", ""),
    ("queue/a.cpp", SPDX + "class QueueManager;\n", "QueueManager"),
    ("wire/a.cpp", SPDX + "ibv_wc wc;\n", "names nothing of verbs"),
    ("queue/a.cpp", SPDX + "auto s = std::format(\"\");\n", "g++ 12"),
    ("queue/a.cpp", SPDX + "// TO" + "DO later\n", "left behind"),
    ("queue/a.cpp", SPDX + "void f() {\n" + "  g();\n" * 58 + "}\n", ""),
    ("queue/a.cpp", SPDX + "void f(int a,\n       int b) {\n" + "  g();\n" * 59 + "}\n", "61 lines"),
    ("queue/a.cpp", SPDX + "void f() {\n  if (x()) {\n" + "    g();\n" * 56 + "  }\n}\nvoid h() {\n" + "  g();\n" * 9 + "}\n", ""),
    ("tests/a.cpp", SPDX + "TEST_CASE(\"a\") {\n" + "  g();\n" * 90 + "}\n", ""),
    ("tests/a.cpp", SPDX + "const Row kRows[] = {\n    {\"a\",\n     [](B& b) {\n" + "       g();\n" * 70 + "     }},\n};\n", ""),
    ("queue/a.cpp", SPDX + "int x;\n" * 400, "split it by noun"),
    ("queue/a.cpp", SPDX + "// tidy: long because it is a table\n" + "int x;\n" * 400, ""),
    ("tests/a.cpp", SPDX + "#define private public\n", "no friends"),
    ("tools/a.py", "# SPDX-License-Identifier: MIT\nx = 1\n", ""),
]


def self_test():
    wrong = 0
    for path, text, expected in CASES:
        found = [message for _, message in complaints(File(path, text))]
        good = len(found) == 1 and expected in found[0] if expected else not found
        if not good:
            print(f"{path}: expected {expected or 'nothing'!r}, found {found}\n{text[:200]}")
            wrong += 1
    print(f"tidy self-test: {len(CASES)} cases, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).resolve().parent.parent)))
