"""Rows without what changes from machine to machine, four digits each: the form that benchmarks/results keeps.

python -m benchmarks.segmentation.results rows.jsonl > benchmarks/results/plain_models.jsonl
"""

import json
import sys
from pathlib import Path

from benchmarks.segmentation.__main__ import KEY, rows

LEFT_OUT = ("options", "fps", "seconds", "true_in_use", "true_largest", "series_nmi", "series_ami")


def main():
    for path in sys.argv[1:]:
        for row in sorted(rows(Path(path)), key=lambda row: [str(row[name]) for name in KEY[:4]]):
            kept = {name: value for name, value in row.items() if name not in LEFT_OUT and "error" not in row}
            if kept:
                print(json.dumps({n: round(v, 4) if isinstance(v, float) else v for n, v in kept.items()}))


if __name__ == "__main__":
    main()
