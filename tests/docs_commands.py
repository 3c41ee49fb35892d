#!/usr/bin/env python3
"""Runs every `plena` command the documentation shows.

usage: docs_commands.py SOURCE_FOLDER PLENA

A transcript in README.md, docs/*.md or examples/*.md is an indented or fenced block with lines
`$ plena ...`. Each page's commands run in order in a scratch folder that holds the project's
examples and models. The exit status must be 0, or N where the command ends in `# exit status N`.
Output that follows a command must be what it prints; numbers that depend on the machine (times,
rates) match any number, and `...` matches any text. A fenced block that opens with a file's name
(```asm scale.asm) is written to that file first.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MEASURED = re.compile(r"\d[\d,.]*(?= ?(?:ms|s|tokens/s|MB|ns)\b)")


def transcripts(page):
    """(line number, command, expected output lines) of each command of a page."""
    found, command = [], None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        inside = line.startswith("    ") or fenced(page, number)
        text = line[4:] if line.startswith("    ") else line
        if inside and text.startswith("$ "):
            command = (number, text[2:], [])
            found.append(command)
        elif inside and command and not text.startswith("```"):
            command[2].append(text)
        elif line.strip():
            command = None
    return [c for c in found if c[1].startswith(("plena ", "plena-emulator "))]


def fenced(page, number):
    lines = page.read_text().splitlines()[:number]
    return sum(line.startswith("```") for line in lines) % 2 == 1


def named_files(page):
    """(name, text) of each fenced block that names a file."""
    return re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def pattern(lines):
    """A regular expression for expected output."""
    text = MEASURED.sub("\0", "\n".join(lines).strip())
    escaped = re.escape(text).replace(re.escape("\0"), r"[\d,.]+").replace(re.escape("..."), r"[\s\S]*?")
    return re.compile(r"\A\s*" + re.sub(r"(?:\\ )+", r"[ ]+", escaped) + r"\s*\Z")


def printed(run):
    """What a command printed, without blanks at the ends of lines."""
    return re.sub(r"[ \t]+$", "", run.stdout + run.stderr, flags=re.MULTILINE)


def run_page(page, programs):
    problems = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("examples", "models"):
            shutil.copytree(SOURCE / name, pathlib.Path(scratch, name))
        for name, text in named_files(page):
            pathlib.Path(scratch, name).write_text(text)
        for number, command, expected in transcripts(page):
            command, _, status = command.partition("# exit status ")
            run = subprocess.run(["bash", "-c", command], cwd=scratch, capture_output=True, text=True,
                                 env={"PATH": f"{programs}:/usr/bin:/bin", "HOME": scratch})
            wanted = int(status or 0)
            if run.returncode != wanted:
                print(f"{page}:{number}: exit status {run.returncode}, not {wanted}: {command}\n{run.stderr}")
                problems += 1
            elif "".join(expected).strip() and not pattern(expected).match(printed(run)):
                print(f"{page}:{number}: prints something else: {command}\n{run.stdout}{run.stderr}")
                problems += 1
    return problems


SOURCE = pathlib.Path(sys.argv[1])
pages = [SOURCE / "README.md", *sorted(SOURCE.glob("docs/*.md")), *sorted(SOURCE.glob("examples/*.md"))]
commands = sum(len(transcripts(page)) for page in pages)
failed = sum(run_page(page, pathlib.Path(sys.argv[2]).parent) for page in pages)
print(f"{commands} commands, {failed} problems")
sys.exit(1 if failed or not commands else 0)
