"""Limits on size: files of at most 400 lines, functions of at most 70, main.cpp under 60."""

import re

import tree

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_MAIN_LINES = 59

_CONTAINER = re.compile(r"(template\s*<.*?>\s*)?(inline\s+)?(namespace|class|struct|union|enum|extern)\b", re.DOTALL)
_CONTINUES = re.compile(r"\s*[,{]")
_EVENTS = re.compile(r"[{};]")


def _is_function(header: str) -> bool:
    return "(" in header and not _CONTAINER.match(header.strip())


def functions(code: str) -> list[tuple[int, int]]:
    """(first line, number of lines) of every function outside other functions, its header included.

    Reads braces only: a block whose header has a parameter list and is no namespace, class or enum is a function. In
    `X::X() : a_{1}, b_{2} {` the header goes on after each brace that a comma or another brace follows.
    """
    found: list[tuple[int, int]] = []
    stack: list[tuple[bool, int]] = []  # (is a function, where its header starts)
    header_start = 0
    for event in _EVENTS.finditer(code):
        inside = any(is_function for is_function, _ in stack)
        if event.group() == "{":
            is_function = not inside and _is_function(code[header_start:event.start()])
            stack.append((is_function, header_start))
            if not inside and not is_function:
                header_start = event.end()
            continue
        if event.group() == "}" and stack:
            is_function, start = stack.pop()
            if inside and not is_function:
                continue
            if is_function and _CONTINUES.match(code, event.end()):
                header_start = start
                continue
            if is_function:
                first = tree.line_of(code, start + len(code[start:]) - len(code[start:].lstrip()))
                found.append((first, tree.line_of(code, event.start()) - first + 1))
        if not any(is_function for is_function, _ in stack):
            header_start = event.end()
    return found


def main() -> None:
    top = tree.root()
    findings = []
    for name in tree.code_files(top, "src", "include", "examples"):
        text = tree.read(top, name)
        lines = text.count("\n")
        limit = MAX_MAIN_LINES if str(name) == "src/main.cpp" else MAX_FILE_LINES
        if lines > limit:
            findings.append(f"{name}:1: {lines} lines, at most {limit}: split it by what its parts decide")
        findings += [f"{name}:{first}: function of {length} lines, at most {MAX_FUNCTION_LINES}"
                     for first, length in functions(tree.bare(text)) if length > MAX_FUNCTION_LINES]
    tree.finish(findings)


if __name__ == "__main__":
    main()
