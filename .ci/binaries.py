"""Looks at built functions: static binaries of the right machine, small enough.

Usage: binaries.py BUILD-DIR arm64|x86_64 — prints sizes, fails with what is wrong.
"""

import glob
import io
import os
import struct
import sys
import zipfile

MACHINES = {"x86_64": 62, "arm64": 183}  # e_machine of ELF
# A larger binary starts later.
CEILING = 12_000_000
CEILINGS = {"QueryFunction": 24_000_000}  # it evaluates expressions (CEL) and knows time zones


def dynamic(elf):
    """Whether a program header asks for an interpreter (PT_INTERP)."""
    offset, = struct.unpack("<Q", elf[32:40])
    size, count = struct.unpack("<HH", elf[54:58])
    return any(struct.unpack("<I", elf[offset + i * size:offset + i * size + 4])[0] == 3 for i in range(count))


def zipped(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("bootstrap", content)
    return len(out.getvalue())


def main():
    folder, arch = sys.argv[1], sys.argv[2]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    expected = {d for d in os.listdir(os.path.join(root, "functions")) if os.path.exists(os.path.join(root, "functions", d, "main.go"))}
    found, wrong = set(), []
    for path in sorted(glob.glob(os.path.join(folder, "*", "bootstrap"))):
        name = os.path.basename(os.path.dirname(path))
        found.add(name.removesuffix("Function").lower())
        with open(path, "rb") as f:
            elf = f.read()
        machine = struct.unpack("<H", elf[18:20])[0]
        print(f"{name:<20} {arch:<7} {len(elf):>10} bytes, {zipped(elf):>9} zipped")
        if elf[:5] != b"\x7fELF\x02" or machine != MACHINES[arch]:
            wrong.append(f"{name} is for machine {machine}, not {arch}")
        elif dynamic(elf):
            wrong.append(f"{name} is linked dynamically")
        if len(elf) > CEILINGS.get(name, CEILING):
            wrong.append(f"{name} has more than {CEILINGS.get(name, CEILING)} bytes")
        if not os.access(path, os.X_OK):
            wrong.append(f"{name} is not executable")
    if found != expected:
        wrong.append(f"built are {sorted(found)}, not {sorted(expected)}")
    for sentence in wrong:
        print(f"{folder}: {sentence}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
