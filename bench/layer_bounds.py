#!/usr/bin/env python3
"""How close a decoder layer comes to what the memory and the array allow.

    layer_bounds.py PLENA CONFIG.json [--mlen 512] [--blen 16] [--positions 512] [--set KEY=VALUE]...

Compiles one layer and two of the model CONFIG.json describes, with random weights and a small
vocabulary, feeds a prompt of so many positions and decodes some tokens under `--timing pipelined`.
Per layer, from the difference of the two, so that the embedding, the setup and the logits drop out:

  decode   bytes a cycle, beside what `plena dram` gets from sequential reads with the same memory
  prefill  cycles of the prompt, beside those the array needs for the layer's matrices and its
           causal attention at BLEN * MLEN multiply-adds a cycle

and what the cycles of a layer went to. Prints Markdown. Nothing here is asserted.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

VOCABULARY = 512
DECODED = 4  # tokens after the first
CHANNELS, INTERLEAVE_BYTES, BURST_BYTES = 8, 256, 32  # what the machine's clock takes by default
BURSTS = 1_000_000  # of the sequential stream


def plena_json(plena, *arguments):
    run = subprocess.run([plena, *map(str, arguments), "--json"], capture_output=True, text=True)
    if run.returncode not in (0, 1) or not run.stdout:
        sys.exit(f"plena {' '.join(map(str, arguments))}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def sequential_bytes_a_nanosecond(plena, preset, folder):
    case = {"id": "sequential", "device": preset, "channels": CHANNELS,
            "interleave_bytes": INTERLEAVE_BYTES, "map": "mop", "n": BURSTS,
            "trace": {"kind": "counters", "base": 0, "counters": [[1, 0, BURST_BYTES]]}}
    path = folder / "sequential.json"
    path.write_text(json.dumps(case))
    return plena_json(plena, "dram", path, "--policy", "open")["cases"][0]["result"]["gbps"]


class Run:
    """One generation of the model cut to `layers` layers."""

    def __init__(self, plena, layers, config, prompt, options):
        report = plena_json(plena, "generate", config, "--random-weights", 1, "--layers", layers,
                            "--prompt-ids", prompt, "--tokens", DECODED + 1, "--temperature", 0,
                            "--timing", "pipelined", *options)
        machine = report["machine"]
        self.prefill_cycles = machine["first_token_cycles"]
        self.decode_cycles = machine["cycles_per_token"]
        self.decode_bytes = machine["bytes_per_token"]
        self.regions = report["timing"]["regions"]
        self.clock_mhz = report["timing"]["clock_mhz"]


def array_cycles(config, positions, mlen, blen):
    """Multiply-adds of the matrices and of causal attention, at the array's peak."""
    hidden, ffn = config["hidden_size"], config["intermediate_size"]
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or hidden // heads
    kv_heads = config.get("num_key_value_heads", heads)
    matrices = hidden * head_dim * (2 * heads + 2 * kv_heads) + 3 * hidden * ffn
    in_sight = positions * (positions + 1) // 2
    return (positions * matrices + 2 * heads * head_dim * in_sight) / (blen * mlen)


def outermost(regions, name):
    return [r for r in regions if r["name"] == name and r["cycles"]]


def where_cycles_went(regions, begin, end, steps):
    """Rows of the operators of a layer: cycles a step and causes."""
    rows = []
    layer = next(r for r in regions if r["name"] == "layer" and begin <= r["begin"] < end)
    for region in regions:
        if not layer["begin"] <= region["begin"] < layer["end"] or region["end"] > layer["end"]:
            continue
        causes = sorted(region["causes"].items(), key=lambda item: -item[1])[:3]
        shares = ", ".join(f"{name} {100 * n / region['cycles']:.0f} %" for name, n in causes
                           if region["cycles"])
        rows.append((region["name"], region["cycles"] / steps, shares))
    return rows


def print_rows(rows):
    print("| operator | cycles | where they went |\n|---|---|---|")
    for name, cycles, shares in rows:
        print(f"| {name} | {cycles:,.0f} | {shares} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plena")
    parser.add_argument("config")
    parser.add_argument("--mlen", type=int, default=512)
    parser.add_argument("--blen", type=int, default=16)
    parser.add_argument("--positions", type=int, default=512)
    parser.add_argument("--preset", default="hbm2-2000")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--operators", action="store_true", help="say where the cycles went")
    options = parser.parse_args()

    config = json.loads(Path(options.config).read_text())
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    hlen = min(head_dim, options.mlen)
    sizes = [f"MLEN={options.mlen}", f"VLEN={options.mlen}", f"BLEN={options.blen}",
             f"HLEN={hlen}", f"HBM_M_Prefetch_Amount={options.mlen}"]
    arguments = ["--hbm-preset", options.preset, "--context", 2 * options.positions]
    for setting in sizes + options.set:
        arguments += ["--set", setting]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cut = folder / "config.json"
        cut.write_text(json.dumps({**config, "vocab_size": VOCABULARY, "bos_token_id": 1,
                                   "eos_token_id": 2}))
        prompt = folder / "ids.json"
        prompt.write_text(json.dumps([7 * i % VOCABULARY for i in range(options.positions)]))
        one, two = (Run(options.plena, n, cut, prompt, arguments) for n in (1, 2))
        sequential = sequential_bytes_a_nanosecond(options.plena, options.preset, folder)

    decode_cycles = two.decode_cycles - one.decode_cycles
    achieved = (two.decode_bytes - one.decode_bytes) / decode_cycles * one.clock_mhz / 1000
    prefill_cycles = two.prefill_cycles - one.prefill_cycles
    bound = array_cycles(config, options.positions, options.mlen, options.blen)
    print(f"A layer of {Path(options.config).stem}, MLEN {options.mlen}, BLEN {options.blen}, "
          f"{options.preset}, {options.positions} positions:\n")
    print("| | cycles | reached | bound | share |\n|---|---|---|---|---|")
    print(f"| decode, a token | {decode_cycles:,.0f} | {achieved:.1f} GB/s "
          f"| {sequential:.1f} GB/s | {100 * achieved / sequential:.1f} % |")
    print(f"| prefill | {prefill_cycles:,} | | {bound:,.0f} cycles of the array "
          f"| {100 * bound / prefill_cycles:.1f} % |")
    if not options.operators:
        return
    blocks = outermost(one.regions, "block")
    behind = blocks[0]["begin"] if blocks else sys.maxsize
    print("\nDecoding a token:\n")
    print_rows(where_cycles_went(one.regions, 0, behind, DECODED))
    if blocks:
        print("\nThe prompt:\n")
        print_rows(where_cycles_went(one.regions, behind, sys.maxsize, 1))


if __name__ == "__main__":
    main()
