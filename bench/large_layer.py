#!/usr/bin/env python3
"""Host time of one large decoder layer on the published machine.

    large_layer.py PLENA CONFIG.json [--rows 32] [--mlen 2048] [--blen 32] [--rounds 3]

Compiles one layer of the model CONFIG.json describes (a Llama-3.1-8B's, say) with random weights and
a small vocabulary for MLEN 2048 and BLEN 32, and feeds it a block of so many tokens with one thread
and with two. Matrix SRAM holds four tiles. Prints Markdown. Nothing here is asserted.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

VOCABULARY = 2048
CONTEXT = 2048
TILES = 4  # of Matrix SRAM


def machine(arguments):
    values = {
        "MLEN": arguments.mlen, "VLEN": arguments.mlen, "BLEN": arguments.blen,
        "HBM_M_Prefetch_Amount": arguments.mlen, "HLEN": 128,
        "MATRIX_SRAM_SIZE": TILES * arguments.mlen, "VECTOR_SRAM_SIZE": 65536,
    }
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


def compile_layer(arguments, folder):
    config = json.loads(Path(arguments.config).read_text())
    config = {key: value for key, value in config.items() if not key.endswith("_token_id")}
    config["vocab_size"] = VOCABULARY
    model = folder / "config.json"
    model.write_text(json.dumps(config))
    image = folder / "image"
    subprocess.run([arguments.plena, "compile", model, "--random-weights", "1", "--layers", "1",
                    "--context", str(CONTEXT), "--block", str(arguments.rows), "-o", image,
                    "--quiet", *machine(arguments)], check=True)
    return image


def seconds(arguments, image, ids, threads):
    run = subprocess.run([arguments.plena, "generate", image, "--prompt-ids", ids, "--tokens", "1",
                          "--temperature", "0", "--threads", str(threads), "--json"],
                         check=True, capture_output=True, text=True)
    return json.loads(run.stdout)["host_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plena")
    parser.add_argument("config")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--mlen", type=int, default=2048)
    parser.add_argument("--blen", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image = compile_layer(arguments, folder)
        ids = folder / "ids.json"
        ids.write_text(json.dumps(list(range(1, arguments.rows + 1))))
        print("| threads | seconds, best of all |\n|---|---|")
        for threads in (1, 2):
            best = min(seconds(arguments, image, ids, threads) for _ in range(arguments.rounds))
            print(f"| {threads} | {best:.2f} |")


if __name__ == "__main__":
    main()
