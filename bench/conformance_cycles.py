#!/usr/bin/env python3
"""Cycles of our programs beside those of the public compiler's, operator by operator.

    conformance_cycles.py PLENA OPERATOR_CYCLES KERNELS

KERNELS is the folder of compiled kernels of a conformance suite: each is run as it is (its memories
loaded, `--isa plena-rs --timing pipelined`). Beside it, the same operator of the same shape, compiled
for the same settings and timed under the same profile: single operators by OPERATOR_CYCLES
(plena_operator_cycles), decoder layers by `plena generate`. Ours load their rows from HBM as theirs
do; a decoder layer has embedding, last norm and logits on top. Prints Markdown. Nothing here is
asserted.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

MODE = "transactional"
WANTED = 0.5  # of the public programs' cycles


def linear(rows, inputs, outputs, bias=False):
    return {"operator": "linear", "rows": rows, "inputs": inputs, "outputs": outputs, "bias": bias}


def feed_forward(rows, inputs, hidden):
    return {"operator": "feed_forward", "rows": rows, "inputs": inputs, "hidden": hidden}


def attention(rows, heads, kv_heads, head_dim):
    return {"operator": "attention", "rows": rows, "heads": heads, "kv_heads": kv_heads,
            "head_dim": head_dim}


def softmax(rows):
    """Of attention what is not scores: exponentials, their sums, and the product with V as well."""
    return {**attention(rows, 1, 1, rows), "what": f"softmax: rows {rows}, ours with the product with V",
            "regions": ["softmax", "values"]}


def norm(kind, rows, inputs, gain=False):
    return {"operator": kind, "rows": rows, "inputs": inputs, "gain": gain}


def decoder(rows, hidden, intermediate, heads, kv_heads, head_dim):
    return {"operator": "decoder", "rows": rows, "hidden": hidden, "intermediate": intermediate,
            "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}


# What each kernel computes, from the arguments of its test and its instructions.
CASES = {
    "aten_linear_16_4_s16": linear(16, 16, 32),
    "aten_linear_32_4": linear(32, 32, 64),
    "aten_linear_64_4_s64": linear(64, 64, 128),
    "aten_linear_64_8_s64": linear(64, 64, 128),
    "aten_linear_64_16_b2s32": linear(64, 64, 128),
    "aten_linear_256_16": linear(64, 256, 256),
    "aten_linear_bias": linear(64, 64, 128, bias=True),
    "aten_ffn_16": feed_forward(16, 16, 32),
    "aten_ffn_64": feed_forward(64, 64, 128),
    "aten_flash_gqa_16": attention(16, 4, 1, 4),
    "aten_flash_gqa_64": attention(64, 4, 1, 16),
    "aten_flash_mha_64": attention(64, 1, 1, 64),
    "aten_softmax_64": softmax(64),
    "aten_rms_norm_16": norm("rms_norm", 16, 16),
    "aten_rms_norm_64": norm("rms_norm", 64, 64),
    "aten_layer_norm_16": norm("layer_norm", 16, 16),
    "aten_layer_norm_64": norm("layer_norm", 64, 64),
    "native_decoder_64": decoder(64, 128, 256, 2, 2, 64),
    "native_decoder_64_kv1": decoder(64, 128, 256, 2, 1, 64),
    "native_decoder_gqa_16": decoder(64, 64, 128, 4, 1, 16),
}


def run_json(command):
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def unpacked(path, folder):
    if path.suffix != ".zst":
        return path
    plain = folder / path.stem
    subprocess.run(["zstd", "-qdf", str(path), "-o", str(plain)], check=True)
    return plain


def bf16_from_binary16(path, folder):
    """FP_MEM's preload as the dialect has it: binary16 by way of f32, to nearest even."""
    import numpy

    bits = numpy.fromfile(path, dtype="<f2").astype("<f4").view("<u4")
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    out = folder / "fp_bf16.bin"
    rounded.astype("<u2").tofile(out)
    return out


def bundled_cycles(plena, bundle, folder):
    files = json.loads((bundle / "bundle.json").read_text())["files"]
    path = {name: unpacked(bundle / file, folder) for name, file in files.items()}
    command = [plena, "run", path["program"], "--isa", "plena-rs", "--settings", path["settings"],
               "--mode", MODE, "--timing", "pipelined", "--stats", "--json"]
    if "hbm" in path:
        command += ["--load", f"hbm={path['hbm']}"]
    if "fp_sram" in path:
        command += ["--load", f"fp={bf16_from_binary16(path['fp_sram'], folder)}"]
    if "int_sram" in path:
        command += ["--load", f"int={path['int_sram']}"]
    for name in path:
        if name.startswith("vram"):
            command += ["--load", f"vram={path[name]}"]
    report = run_json(command)
    return report.get("timing", report)["cycles"]


def decoder_cycles(plena, case, settings, folder):
    config = folder / "config.json"
    config.write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "hidden_size": case["hidden"],
        "intermediate_size": case["intermediate"], "num_attention_heads": case["heads"],
        "num_key_value_heads": case["kv_heads"], "head_dim": case["head_dim"],
        "num_hidden_layers": 1, "vocab_size": case["rows"], "tie_word_embeddings": True,
        "max_position_embeddings": case["rows"]}))
    ids = folder / "ids.json"
    ids.write_text(json.dumps(list(range(case["rows"]))))
    report = run_json([plena, "generate", config, "--random-weights", 1, "--prompt-ids", ids,
                       "--tokens", 1, "--temperature", 0, "--settings", settings, "--mode", MODE,
                       "--timing", "pipelined", "--json"])
    return report["machine"]["first_token_cycles"]


def single_operators(program, kernels, folder):
    cases = [{"name": name, "settings": str(kernels / name / "plena_settings.toml"), "mode": MODE,
              **case} for name, case in CASES.items() if case["operator"] != "decoder"]
    path = folder / "cases.json"
    path.write_text(json.dumps(cases))
    return {result["name"]: result for result in run_json([program, path])}


def describe(case):
    if "what" in case:
        return case["what"]
    sizes = {key: value for key, value in case.items() if key not in ("operator", "bias", "gain")}
    return f"{case['operator'].replace('_', ' ')}: " + ", ".join(
        f"{key.replace('_', ' ')} {value}" for key, value in sizes.items())


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    plena, operators, kernels = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    print("| kernel | what | theirs | ours | ratio | largest error |\n|---|---|---|---|---|---|")
    short = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = single_operators(operators, kernels, folder)
        for kernel, case in CASES.items():
            theirs = bundled_cycles(plena, kernels / kernel, folder)
            result = ours.get(kernel)
            if result is None:
                settings = kernels / kernel / "plena_settings.toml"
                result = {"cycles": decoder_cycles(plena, case, settings, folder)}
            if "failure" in result:
                print(f"| `{kernel}` | {describe(case)} | {theirs:,} | {result['failure']} | | |")
                continue
            if "regions" in case:
                result["cycles"] = sum(result["regions"][region] for region in case["regions"])
            ratio = result["cycles"] / theirs
            error = f"{result['error']:.1e}" if "error" in result else ""
            print(f"| `{kernel}` | {describe(case)} | {theirs:,} | {result['cycles']:,} "
                  f"| {ratio:.2f} | {error} |")
            if ratio > WANTED:
                short.append(kernel)
    print(f"\nAt most half: {len(CASES) - len(short)} of {len(CASES)}.")


if __name__ == "__main__":
    main()
