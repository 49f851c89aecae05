"""Run benchmarks one after the other, shown as they go; the results of those that succeed are kept.

    python benchmarks/bench.py training kernels

They go into a folder named after the processor, so that those of other machines are kept.
"""

import subprocess
import sys
from pathlib import Path

from timing import folder

HERE = Path(__file__).parent


def printed(name: str) -> str:
    """What the benchmark prints, which is shown at once; a failure ends this program."""
    lines = []
    command = [sys.executable, "-u", str(HERE / f"{name}.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        sys.exit(f"the benchmark {name} failed; its results are not kept")
    return "".join(lines)


def main() -> None:
    results = HERE / "results" / folder()
    for name in sys.argv[1:]:
        print(f"== {name}", flush=True)
        text = printed(name)
        results.mkdir(parents=True, exist_ok=True)
        (results / f"{name}.txt").write_text(text)
        print(f"== kept in {results / name}.txt\n", flush=True)


if __name__ == "__main__":
    main()
