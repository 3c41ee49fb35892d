#!/usr/bin/env python3
"""Simulated text generation beside native programs, in one run: ratios first.

    native_comparison.py PLENA_BENCH [--llama2c RUN] [--llama-bench LLAMA_BENCH --gguf MODEL]

RUN is llama2.c's program (gcc -O3 -march=native -ffast-math run.c -lm), which decodes the
repository's stories260K; LLAMA_BENCH is llama.cpp's llama-bench, for a model of the user's, which
the simulated machine runs as well: 64 tokens decoded, and a prompt of 256. Rounds take turns, so that
what else the machine does meets both; the best round of each counts. Seconds are CPU time of one
thread, for llama2.c its process's without the start. Nothing here is asserted.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORIES = ROOT / "models" / "stories260K"
POSITIONS = 200

# Benchmarks of plena_bench, their counter, and what a row calls them.
KERNELS = [
    ("scalar/functional", "instructions/s", "scalar and loop instructions"),
    ("vector/functional", "instructions/s", "vector instructions"),
    ("story_token/pipelined", "instructions/s", "a token of stories260K with the clock on"),
    ("assemble_text/compiled", "bytes_per_second", "assembler, bytes of text"),
]


def cpu_seconds(command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def llama2c_rate(program):
    def seconds(tokens):
        return cpu_seconds([program, str(STORIES / "stories260K.bin"), "-z",
                            str(STORIES / "tok512.bin"), "-t", "0", "-n", str(tokens)])
    return (POSITIONS - 2) / (seconds(POSITIONS) - seconds(2))


def llama_bench_rates(program, model):
    run = subprocess.run([program, "-m", model, "-t", "1", "-p", "256", "-n", "64", "-r", "1",
                          "-o", "json"], capture_output=True, text=True, check=True)
    return {"prefill of 256" if test["n_prompt"] else "decode": test["avg_ts"]
            for test in json.loads(run.stdout)}


# Weights, caches and activations of an image, by the name its rows have.
IMAGE_TYPES = {
    "MXFP8": [],
    "bf16": [part for name in ("HBM_M_WEIGHT_TYPE", "HBM_M_KV_TYPE", "HBM_V_KV_TYPE", "HBM_V_ACT_TYPE")
             for part in ("--set", f"{name}=bf16")],
}


def compile_images(plena, model, folder):
    images = {}
    for name, types in IMAGE_TYPES.items():
        images[name] = str(Path(folder) / name)
        subprocess.run([plena, "compile", model, "-o", images[name], "--context", "512", *types],
                       capture_output=True, check=True)
    return images


def simulated_rate(plena, image, prompt, tokens):
    """Steps a second of a prompt of so many ids and so many tokens after it."""
    ids = Path(image).parent / f"ids{prompt}.json"
    ids.write_text(json.dumps(list(range(1000, 1000 + prompt))))
    run = subprocess.run([plena, "generate", image, "--prompt-ids", str(ids), "--tokens", str(tokens),
                          "--temperature", "0", "--threads", "1", "--json"],
                         capture_output=True, text=True, check=True)
    result = json.loads(run.stdout)
    return result["steps"] / result["host_seconds"]


def simulated_rates(plena, images):
    rates = {f"simulated {name} decode": simulated_rate(plena, image, 1, 64)
             for name, image in images.items()}
    rates["simulated MXFP8 prefill of 256"] = simulated_rate(plena, images["MXFP8"], 256, 1)
    return rates


def bench_counters(program, pattern):
    run = subprocess.run([program, f"--benchmark_filter={pattern}", "--benchmark_format=json",
                          "--benchmark_min_time=0.2"], capture_output=True, text=True, check=True)
    return {b["name"]: b for b in json.loads(run.stdout)["benchmarks"]}


def keep_best(best, rates):
    for name, rate in rates.items():
        best[name] = max(best.get(name, 0), rate)


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def measure(arguments, images):
    best = {}
    for _ in range(arguments.rounds):
        decode = bench_counters(arguments.plena_bench, f"^decode_(mxfp8|bf16)/{POSITIONS}")
        keep_best(best, {name.split("/")[0]: b["tokens/s"] for name, b in decode.items()})
        if arguments.llama2c:
            keep_best(best, {"llama2.c": llama2c_rate(arguments.llama2c)})
        if arguments.llama_bench:
            keep_best(best, {f"llama.cpp {name}": rate for name, rate in
                             llama_bench_rates(arguments.llama_bench, arguments.gguf).items()})
            keep_best(best, simulated_rates(arguments.plena, images))
    return best


def print_generation(best):
    native = best.get("llama2.c")
    print(f"stories260K, {POSITIONS} positions, one thread\n")
    print("| | of llama2.c | tokens/s |\n|---|---|---|")
    for name, title in [("decode_bf16", "simulated, bf16 in HBM"),
                        ("decode_mxfp8", "simulated, MXFP8 in HBM"), ("llama2.c", "llama2.c")]:
        if name in best:
            ratio = f"{best[name] / native:.2f}" if native else ""
            print(f"| {title} | {ratio} | {best[name]:,.0f} |")
    simulated = {name: rate for name, rate in best.items() if name.startswith("simulated")}
    if simulated:
        print("\n| the model of --gguf, one thread | of llama.cpp | tokens/s |\n|---|---|---|")
        for name, rate in simulated.items():
            native = best["llama.cpp " + ("decode" if name.endswith("decode") else "prefill of 256")]
            print(f"| {name} | {rate / native:.2f} | {rate:,.1f} |")
        for name in ("llama.cpp decode", "llama.cpp prefill of 256"):
            print(f"| {name} | 1.00 | {best[name]:,.1f} |")


def print_kernels(program):
    counters = bench_counters(program, "^(" + "|".join(name for name, _, _ in KERNELS) + ")$")
    print("\n| | M/s |\n|---|---|")
    for name, counter, title in KERNELS:
        if name in counters:
            print(f"| {title} | {counters[name][counter] / 1e6:,.0f} |")
    peak = bench_counters(program, "^fma_peak/")
    kernels = bench_counters(program, "^numerics/avx.*/M_.*/bf16$")
    print("\n| matrix kernel, bf16 tile | of the FMA peak | G FMA/s |\n|---|---|---|")
    for name, b in kernels.items():
        target = name.split("/")[1]
        top = peak.get(f"fma_peak/{target}")
        if top and "FMA/s" in b:
            print(f"| {name} | {b['FMA/s'] / top['FMA/s']:.0%} | {b['FMA/s'] / 1e9:.1f} |")
    decode = bench_counters(program, "^numerics/[^/]*/(decode|encode)_mxfp8_e4m3/bf16$")
    print("\n| codec | G elements/s |\n|---|---|")
    for name, b in decode.items():
        print(f"| {name} | {b['items_per_second'] / 1e9:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plena_bench")
    parser.add_argument("--llama2c", help="llama2.c's program")
    parser.add_argument("--llama-bench", help="llama.cpp's llama-bench")
    parser.add_argument("--gguf", help="the model for it")
    parser.add_argument("--plena", help="the command, of the same build by default")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if bool(arguments.llama_bench) != bool(arguments.gguf):
        parser.error("--llama-bench and --gguf go together")
    print(f"{cpu_name()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    arguments.plena = arguments.plena or str(
        Path(arguments.plena_bench).resolve().parent.parent / "plena" / "cli" / "plena")
    with tempfile.TemporaryDirectory() as folder:
        images = {}
        if arguments.gguf:
            images = compile_images(arguments.plena, arguments.gguf, folder)
        print_generation(measure(arguments, images))
    print_kernels(arguments.plena_bench)


main()
