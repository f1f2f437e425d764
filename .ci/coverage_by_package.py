"""Print the share of lines and branches that tests ran, for each package and in all, from coverage's own data."""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path


def main() -> None:
    """Ask coverage for its report and add it up."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(report)]
        subprocess.run(command, check=True)
        files = json.loads(report.read_text())["files"]
    ran: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for name, file in files.items():
        place = name.replace("\\", "/").rpartition("parityscope/")[2].partition("/")
        package, summary = place[0] if place[1] else "(top)", file["summary"]
        for key in (package, "in all"):
            ran[key] += summary["covered_lines"] + summary["covered_branches"]
            there[key] += summary["num_statements"] + summary["num_branches"]
    for package in [*sorted(set(there) - {"in all"}), "in all"]:
        print(
            f"{package:16s} {100 * ran[package] / max(1, there[package]):5.1f} % of {there[package]} lines and branches"
        )


if __name__ == "__main__":
    main()
