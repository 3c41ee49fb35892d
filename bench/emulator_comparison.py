#!/usr/bin/env python3
"""Time and memory of `plena emulate` beside those recorded of the public emulator.

    emulator_comparison.py PLENA kernels FOLDER   every kernel bundle of a conformance folder
    emulator_comparison.py PLENA start            an empty program with 128 GiB of HBM
    emulator_comparison.py PLENA linear           a linear layer of 2048 x 2048, 64 rows

Each is a whole process, best of several; processor time is user and system time together. Resident
memory is the maximum that GNU time reports; without that program it is at least this script's own,
which a child starts with. Prints Markdown for docs/performance.md. Nothing here is asserted.
"""

import argparse
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 10
GNU_TIME = shutil.which("time")
LINEAR_PEER_SECONDS = 12.4  # the public emulator, for the program of `linear`


class Measurement:
    def __init__(self, wall, processor, rss_kb):
        self.wall, self.processor, self.rss_kb = wall, processor, rss_kb


def measure(command, folder):
    """One run in `folder`, as wait4() reports it."""
    begin = time.monotonic()
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}")
    return Measurement(time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def resident_kb(command, folder):
    with tempfile.NamedTemporaryFile() as report:
        subprocess.run([GNU_TIME, "-f", "%M", "-o", report.name, *command], cwd=folder,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return int(Path(report.name).read_text())


def best_of(command, folder):
    runs = [measure(command, folder) for _ in range(RUNS)]
    rss_kb = resident_kb(command, folder) if GNU_TIME else max(r.rss_kb for r in runs)
    return Measurement(min(r.wall for r in runs), min(r.processor for r in runs), rss_kb)


# ------------------------------------------------------------ kernel bundles


def unpack(bundle, to):
    for path in bundle.iterdir():
        if path.suffix == ".zst" and not path.name.startswith("dump_"):
            subprocess.run(["zstd", "-dqf", path, "-o", to / path.stem], check=True)
        else:
            shutil.copy(path, to / path.name)


def kernels(plena, conformance):
    print("| kernel | times as fast | times as small | instructions | theirs, s, MB | ours, ms, MB |")
    print("|---|---|---|---|---|---|")
    worst = [float("inf"), float("inf")]
    for bundle in sorted((conformance / "kernels").iterdir()):
        about = json.loads((bundle / "bundle.json").read_text().replace(": NaN", ": null"))
        with tempfile.TemporaryDirectory() as folder:
            unpack(bundle, Path(folder))
            ours = best_of([plena, "emulate", "--quiet", *about["command_line_args"]], folder)
        theirs_user, theirs_rss = about["emulator_user_s"], about["emulator_rss_kb"]
        faster = theirs_user / max(ours.processor, 1e-4)
        smaller = theirs_rss / ours.rss_kb
        worst = [min(worst[0], faster), min(worst[1], smaller)]
        print(f"| `{bundle.name}` | {faster:.0f} | {smaller:.0f} | {about['instructions_executed']:,} "
              f"| {theirs_user:.2f}, {theirs_rss / 1024:,.0f} "
              f"| {ours.processor * 1000:.1f}, {ours.rss_kb / 1024:.1f} |")
    print(f"\nSmallest ratios: time {worst[0]:.0f}, memory {worst[1]:.0f}.")


# ------------------------------------------------------------ programs written here


def register_form(opcode, rd=0, rs1=0, rs2=0, select=0, order=0):
    return opcode | rd << 6 | rs1 << 10 | rs2 << 14 | select << 18 | order << 22


def load_immediate(rd, value):
    """S_ADDI_INT, or S_LUI_INT and S_ADDI_INT where it is wider than 18 bits."""
    if value < 1 << 18:
        return [add_immediate(rd, 0, value)]
    return [0x25 | rd << 6 | value >> 12 << 10, add_immediate(rd, rd, value & 0xFFF)]


def add_immediate(rd, rs1, value):
    return 0x22 | rd << 6 | rs1 << 10 | value << 14


def loop(counter, trips, body):
    return [0x2F | counter << 6 | trips << 10, *body, 0x30 | counter << 6]


MLEN, BLEN, ROWS, HIDDEN, OUT = 64, 4, 64, 2048, 2048
TILE = MLEN * MLEN
TILES_A_PASS = 4  # tiles of K a pass of the compiler's linear layer holds in Matrix SRAM
X_BYTES, W_BYTES = ROWS * HIDDEN, HIDDEN * OUT
W_BASE = X_BYTES + X_BYTES // 8
X_AT, OUT_AT, PART_AT = 0, ROWS * HIDDEN, 2 * ROWS * HIDDEN


def load_activations():
    inner = [register_form(0x29, 4, 3, 0, 1), add_immediate(4, 4, BLEN * MLEN),
             add_immediate(3, 3, BLEN * HIDDEN)]
    outer = [add_immediate(3, 2, 0), *loop(6, ROWS // BLEN, inner), add_immediate(2, 2, MLEN)]
    return [*load_immediate(1, 0), register_form(0x2B, 0, 0, 1), *load_immediate(2, X_BYTES),
            register_form(0x2C, 2), *load_immediate(2, 0), *load_immediate(4, X_AT),
            *load_immediate(3, HIDDEN), register_form(0x2D, 3),
            *loop(5, HIDDEN // MLEN, outer)]


def load_tiles(column, first_tile):
    words = [*load_immediate(4, W_BASE), register_form(0x2B, 0, 0, 4),
             *load_immediate(1, W_BYTES), register_form(0x2C, 1), *load_immediate(2, OUT),
             register_form(0x2D, 2)]
    for k in range(TILES_A_PASS):
        offset = (first_tile + k) * MLEN * OUT + column * MLEN
        words += [*load_immediate(3, k * TILE), *load_immediate(1, offset),
                  register_form(0x28, 3, 1, 0, 1)]
    return words


def project(first_tile, target):
    inner = [register_form(0x01, 0, 2, 1), add_immediate(1, 1, ROWS * MLEN),
             add_immediate(2, 2, TILE)]
    row = [add_immediate(1, 7, 0), add_immediate(2, 8, 0), *loop(6, TILES_A_PASS, inner),
           0x06 | 3 << 6, add_immediate(7, 7, BLEN * MLEN), add_immediate(3, 3, BLEN * MLEN)]
    column = [*load_immediate(7, X_AT + first_tile * ROWS * MLEN), add_immediate(3, 9, 0),
              *loop(5, ROWS // BLEN, row), add_immediate(8, 8, BLEN * MLEN),
              add_immediate(9, 9, BLEN)]
    return [*load_immediate(8, 0), *load_immediate(9, target), *loop(4, MLEN // BLEN, column)]


def block_add(target, source):
    body = [register_form(0x0D, 1, 2, 3), add_immediate(1, 1, MLEN), add_immediate(2, 2, MLEN),
            add_immediate(3, 3, MLEN)]
    return [*load_immediate(1, target), *load_immediate(2, target), *load_immediate(3, source),
            *loop(4, ROWS, body)]


def linear_program():
    """X @ W in the manner of the public compiler: a column of tiles at a time, K in passes of four
    tiles whose partial sums are added row by row."""
    words = load_activations()
    for column in range(OUT // MLEN):
        target = OUT_AT + column * ROWS * MLEN
        for first_tile in range(0, HIDDEN // MLEN, TILES_A_PASS):
            words += load_tiles(column, first_tile)
            words += project(first_tile, target if first_tile == 0 else PART_AT)
            if first_tile != 0:
                words += block_add(target, PART_AT)
    return words


def executed(words):
    """Instructions with loops unrolled."""
    total, trips = 0, [1]
    for word in words:
        if word & 0x3F == 0x2F:
            total += trips[-1]
            trips.append(trips[-1] * (word >> 10))
            continue
        total += trips[-1]
        if word & 0x3F == 0x30:
            trips.pop()
    return total


def mxfp8(count, rng):
    """`count` E4M3 codes of magnitude 2^-3 … 2, and their scales, all 2^-4."""
    codes = bytes(0x20 + (byte & 0x1F) | byte & 0x80 for byte in range(256))
    return rng.randbytes(count).translate(codes) + bytes([123]) * (count // 8)


def write_inputs(folder, words, hbm):
    (folder / "program.mem").write_text("".join(f"0x{word:08X}\n" for word in words))
    (folder / "hbm.bin").write_bytes(hbm)
    (folder / "fp.bin").write_bytes(struct.pack("<2e", 0, 1))
    settings = "[MODE]\nactive = \"transactional\"\n"
    for key, value in {"MLEN": MLEN, "VLEN": MLEN, "BLEN": BLEN, "HLEN": 16, "DC_EN": 1,
                       "MATRIX_SRAM_SIZE": 4096, "VECTOR_SRAM_SIZE": 4194304, "HBM_SIZE": 1 << 34,
                       "HBM_M_Prefetch_Amount": MLEN, "HBM_V_Prefetch_Amount": 4,
                       "HBM_V_Writeback_Amount": 4, "MAX_LOOP_INSTRUCTIONS": 100000}.items():
        settings += f"[TRANSACTIONAL.CONFIG.{key}]\nvalue = {value}\n"
    (folder / "settings.toml").write_text(settings)


def emulate(plena, folder, hbm_size):
    return best_of([plena, "emulate", "--quiet", "--opcode", "program.mem", "--hbm", "hbm.bin",
                    "--fpsram", "fp.bin", "--settings", "settings.toml", "--hbm-size", hbm_size],
                   folder)


def start(plena):
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder), [], b"")
        ours = emulate(plena, folder, "128GiB")
    print(f"Start with 128 GiB of HBM: {ours.wall * 1000:.1f} ms ({ours.processor * 1000:.1f} ms of "
          f"processor time), {ours.rss_kb / 1024:.1f} MB.")


def linear(plena):
    rng = random.Random(1)
    words = linear_program()
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder), words, mxfp8(X_BYTES, rng) + mxfp8(W_BYTES, rng))
        ours = emulate(plena, folder, "16GiB")
    count = executed(words)
    print(f"Linear layer 2048 x 2048, 64 rows, {count / 1e6:.2f} M instructions: "
          f"{ours.wall:.3f} s ({ours.processor:.3f} s of processor time), {ours.rss_kb / 1024:.0f} MB; "
          f"{LINEAR_PEER_SECONDS / ours.processor:.0f} times as fast.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plena", type=Path)
    parser.add_argument("what", choices=["kernels", "start", "linear"])
    parser.add_argument("folder", type=Path, nargs="?")
    arguments = parser.parse_args()
    plena = str(arguments.plena.resolve())
    if arguments.what == "kernels":
        kernels(plena, arguments.folder)
    elif arguments.what == "start":
        start(plena)
    else:
        linear(plena)


if __name__ == "__main__":
    main()
