#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what the built libraries export, and what they need, with the lists in tests/abi.

    abi_check.py LIBIBVERBS LIBRDMACM LIBNICLESS_PATHS TESTS_ABI_FOLDER PRIVATE_H

A name that is missing, at another version, or no longer (or newly) the default one of its name breaks programs that
were linked long ago; a name too many is a promise nobody meant. See docs/ABI.md. Exit status 0: all as listed.
"""
import pathlib
import re
import subprocess
import sys

PRIVATE = re.compile(r"IBVERBS_PRIVATE_\d+$")
# What a preload may pull into every process. ISA-L exists as a shared library only (docs/adr).
NEEDED_ALLOWED = re.compile(r"(libc|libm|libpthread|libdl|libisal|libibverbs|ld-linux[\w-]*)\.so\.\d+$")


def lines_of(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def exports_of(library):
    """{(name, version, is_default)} of what the library defines; version None if it has none."""
    found = set()
    for line in lines_of("nm", "-D", "--defined-only", library):
        kind, symbol = line.split()[-2:]
        name, _, version = symbol.partition("@")
        if kind == "A" and name == version.lstrip("@"):
            continue  # a version node itself
        found.add((name, version.lstrip("@") or None, version.startswith("@")))
    return {entry for entry in found if entry[0] != entry[1] and not is_node(entry)}


def is_node(entry):
    return entry[1] is None and re.match(r"(IBVERBS|RDMACM|NICLESS)_", entry[0]) is not None


def listed(*files):
    """{(name, version, is_default)} of the lists, one name@VERSION a line, @@ for the default version."""
    entries = set()
    for file in files:
        for line in file.read_text().split():
            name, version = line.split("@", 1)
            entries.add((name, version.lstrip("@"), version.startswith("@")))
    return entries


def show(entry):
    name, version, default = entry
    return f"{name}{'@@' if default else '@'}{version}" if version else f"{name} (no version)"


def check_public(library, exports, wanted, allowed_more):
    """The public nodes hold exactly what is wanted; allowed_more is a predicate for the rest."""
    complaints = [f"{library}: missing {show(e)}" for e in sorted(wanted - exports, key=str)]
    for entry in sorted(exports - wanted, key=str):
        if not allowed_more(entry):
            complaints.append(f"{library}: exports {show(entry)}, which is in no list")
    return complaints


def check_libibverbs(library, folder, private_h):
    exports = exports_of(library)
    everything = listed(folder / "libibverbs_44.symbols", folder / "libibverbs_65.symbols")
    public = {e for e in everything if not PRIVATE.match(e[1])}
    # Nobody links to the private nodes: which version is the default does not matter there, and all nodes hold all names.
    private = {e[:2] for e in everything if PRIVATE.match(e[1])} | {e[:2] for e in listed(folder / "private.symbols")}
    private_names = {name for name, _ in private}
    ours = set(re.findall(r"\b(nicless_\w+)\(", private_h.read_text()))

    def allowed(entry):
        name, version, _ = entry
        if version is not None and PRIVATE.match(version):
            return name in private_names
        return version == "NICLESS_PRIVATE" and name in ours

    complaints = check_public(library, exports, public, allowed)
    have = {e[:2] for e in exports}
    complaints += [f"{library}: missing {n}@{v}" for n, v in sorted(private - have)]
    complaints += [f"{library}: missing {n}@@NICLESS_PRIVATE" for n in sorted(ours) if (n, "NICLESS_PRIVATE") not in have]
    return complaints


def check_librdmacm(library, folder):
    wanted = listed(folder / "librdmacm_44.symbols", folder / "librdmacm_65.symbols")
    return check_public(library, exports_of(library), wanted, lambda entry: False)


def check_paths(library, folder):
    """Names of libc without a version: such a definition serves every version that a program asks for."""
    names = (folder / "libnicless_paths.symbols").read_text().split()
    return check_public(library, exports_of(library), {(name, None, False) for name in names}, lambda entry: False)


def check_dynamic(library, soname, sanitized):
    text = "\n".join(lines_of("readelf", "-dW", library))
    complaints = []
    if re.findall(r"\(SONAME\).*\[(.*)\]", text) != ([soname] if soname else []):
        complaints.append(f"{library}: its SONAME is not {soname}")
    if "NODELETE" not in text:
        complaints.append(f"{library}: can be unloaded (-z nodelete is missing)")
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
        if not NEEDED_ALLOWED.match(needed) and not sanitized:
            complaints.append(f"{library}: needs {needed}")
    return complaints


def main(arguments):
    sanitized = "--sanitized" in arguments
    arguments = [a for a in arguments if a != "--sanitized"]
    if len(arguments) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    libibverbs, librdmacm, paths, folder, private_h = arguments
    complaints = check_libibverbs(libibverbs, pathlib.Path(folder), pathlib.Path(private_h))
    complaints += check_librdmacm(librdmacm, pathlib.Path(folder))
    complaints += check_paths(paths, pathlib.Path(folder))
    complaints += check_dynamic(libibverbs, "libibverbs.so.1", sanitized)
    complaints += check_dynamic(librdmacm, "librdmacm.so.1", sanitized)
    complaints += check_dynamic(paths, None, sanitized)
    for complaint in complaints:
        print(complaint)
    print(f"abi_check: {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
