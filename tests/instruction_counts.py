#!/usr/bin/env python3
"""Host instructions of fixed workloads, counted by callgrind, against a stored baseline.

    instruction_counts.py PLENA            compares; exit status 1 where one grew beyond its tolerance
    instruction_counts.py PLENA --renew    writes the baseline anew

Seconds depend on the machine and on who else is on it; instructions do not. Kernels run for AVX2,
which is what valgrind knows. The baseline holds for the compiler that it names; with another, or
without valgrind, the check is skipped (exit status 77).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = Path(__file__).resolve().with_name("instruction_counts.json")
MODEL = ROOT / "models" / "stories260K" / "stories260K.bin"
SKIPPED = 77
MACHINE = ["--set", f"HBM_SIZE={1 << 30}"]  # valgrind has no room for 128 GiB
TOLERANCE = 0.03  # of growth; libraries differ a little between releases

BF16 = ["--set", "HBM_M_WEIGHT_TYPE=bf16", "--set", "HBM_M_KV_TYPE=bf16",
        "--set", "HBM_V_ACT_TYPE=bf16", "--set", "HBM_V_KV_TYPE=bf16"]

CLOCK = ["--timing", "pipelined", "--hbm-preset", "ideal"]

SCALAR = """
      C_LOOP_START gp1, {n}
      S_ADDI_INT gp2, gp2, 64
      S_ADD_INT  gp4, gp2, gp3
      S_MUL_INT  gp6, gp5, gp4
      C_LOOP_END gp1
"""
# An output tile of M_MM column blocks, the weights loaded anew each time.
COLUMNS = """
      S_ADDI_INT      gp2, gp0, 65536
      C_SET_ADDR_REG  a1, gp0, gp0
      C_SET_SCALE_REG gp2
      C_LOOP_START    gp1, {n}
      H_PREFETCH_M    gp0, gp0, a1, 0, 0
      S_ADDI_INT      gp3, gp0, 0
      C_LOOP_START    gp4, 16
      M_MM            0, gp3, gp0
      M_MM_WO         gp3, 0, 256
      S_ADDI_INT      gp3, gp3, 4
      C_LOOP_END      gp4
      C_LOOP_END      gp1
"""


def counted(command):
    """Instructions of a whole process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, PLENA_SIMD="avx2")
        run = subprocess.run(["valgrind", "--tool=callgrind",
                              f"--callgrind-out-file={folder}/out"] + command,
                             env=environment, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit status {run.returncode}\n{run.stderr}")
        return int(re.search(r"Collected : (\d+)", run.stderr).group(1))


def per_step(command_for, few, many):
    """Instructions one of many equal steps takes: what start and end cost cancels out."""
    return (counted(command_for(many)) - counted(command_for(few))) / (many - few)


def generate(plena, settings):
    return lambda tokens: [plena, "generate", str(MODEL), "--temperature", "0", "--quiet",
                           "--tokens", str(tokens)] + MACHINE + settings


def program(plena, folder, text, options=()):
    def command(iterations):
        path = Path(folder) / f"{iterations}.asm"
        path.write_text(text.format(n=iterations))
        return [plena, "run", str(path), "--quiet", *options] + MACHINE
    return command


def measure(plena):
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.asm"
        empty.write_text("S_ADDI_INT gp1, gp0, 1\n")
        return {
            "start": counted([plena, "run", str(empty), "--quiet"] + MACHINE),
            "token, MXFP8": round(per_step(generate(plena, []), 10, 40)),
            "token, bf16": round(per_step(generate(plena, BF16), 10, 40)),
            "token, MXFP8, with a clock": round(per_step(generate(plena, CLOCK), 10, 40)),
            "iteration of 4 scalar instructions":
                round(per_step(program(plena, folder, SCALAR), 100, 100100), 1),
            "4 scalar instructions with a clock":
                round(per_step(program(plena, folder, SCALAR, CLOCK), 100, 100100), 1),
            "16 column blocks of a tile":
                round(per_step(program(plena, folder, COLUMNS), 100, 1100)),
        }


def compiler_of(plena):
    cache = Path(plena).resolve().parents[2] / "CMakeCache.txt"
    path = re.search(r"CMAKE_CXX_COMPILER:\w+=(.*)", cache.read_text()).group(1)
    return subprocess.run([path, "--version"], capture_output=True, text=True,
                          check=True).stdout.splitlines()[0]


def compare(counts, baseline):
    grown = 0
    for name, count in counts.items():
        expected = baseline[name]
        change = count / expected - 1
        verdict = "GREW" if change > TOLERANCE else "less" if change < -TOLERANCE else "ok"
        grown += verdict == "GREW"
        print(f"{name:36} {expected:>12,} {count:>12,} {change:+7.1%}  {verdict}")
    return grown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plena")
    parser.add_argument("--renew", action="store_true")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: there is no valgrind")
        sys.exit(SKIPPED)
    compiler = compiler_of(arguments.plena)
    if arguments.renew:
        BASELINE.write_text(json.dumps({"compiler": compiler, "counts": measure(arguments.plena)},
                                       indent=2) + "\n")
        return
    baseline = json.loads(BASELINE.read_text())
    if baseline["compiler"] != compiler:
        print(f"skipped: the baseline is {baseline['compiler']}'s, this build {compiler}'s")
        sys.exit(SKIPPED)
    if compare(measure(arguments.plena), baseline["counts"]):
        sys.exit("more instructions than the baseline; where that is meant, ./dev counts --renew "
                 "writes it anew")


main()
