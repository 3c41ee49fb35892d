#!/usr/bin/env python3
"""Two types of one name in namespace plena are two definitions of one thing to the linker, which keeps
either of their functions (C++20 [basic.def.odr]); no compiler sees both. Lists such pairs; none is right.

usage: type_names.py SOURCE_FOLDER
"""
import collections
import pathlib
import re
import sys

NAMESPACE = re.compile(r"^(?:inline )?namespace ?([\w:]*) \{$")
CLOSING = re.compile(r"^\}  // namespace")
TYPE = re.compile(r"^(?:struct|class|enum class|enum|union) (?:alignas\([^)]*\) )?(\w+)(?!\w|::)[^;]*$")


def types_of(source):
    """Qualified names of the types a file defines at namespace scope, those of unnamed namespaces left out."""
    scopes = []
    for line in source.splitlines():
        if opened := NAMESPACE.match(line):
            scopes.append(opened[1])
        elif CLOSING.match(line) and scopes:
            scopes.pop()
        elif (defined := TYPE.match(line)) and "" not in scopes:
            yield "::".join([*scopes, defined[1]])


def main():
    files = collections.defaultdict(set)
    for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.*")):
        if path.suffix in (".h", ".cc"):
            for name in types_of(path.read_text()):
                files[name].add(str(path))
    twins = {name: places for name, places in files.items() if len(places) > 1}
    for name, places in sorted(twins.items()):
        print(f"{name} is defined in {' and '.join(sorted(places))}")
    if not files:
        print(f"no types found below {sys.argv[1]}")
    return 1 if twins or not files else 0


if __name__ == "__main__":
    sys.exit(main())
