"""What a user would pick instead, side by side: the same words, the same k, the same splits.

    python -m benchmarks.peers                       all questions, in full
    python -m benchmarks.peers which-words ...       some of them
    python -m benchmarks.peers --quick               capped sets, without what takes long
    python -m benchmarks.peers --list                which there are
    python -m benchmarks.peers --redraw              tables from the results there are, computing nothing
    python -m benchmarks.peers --page docs/compared.md --results benchmarks/results/peers     the same, into a page

Each result is RESULTS/ID.json, with settings, versions, seed and machine; its table is ID.md. Real sets are Parquet
files and NumPy archives in the folder that --data names. What is compared comes with `pip install '.[peers]'`; Spark
needs Java 17 besides. What is not installed, or takes too long, is told in the table.
"""

from __future__ import annotations

import sys

from benchmarks.papers.__main__ import Program, main
from benchmarks.peers import good_genes, good_words, how_long, which_genes, which_words

QUESTIONS = {
    "which-words": which_words,
    "which-genes": which_genes,
    "good-words": good_words,
    "good-genes": good_genes,
    "how-long": how_long,
}
PROGRAM = Program("benchmarks.peers", __doc__, lambda: QUESTIONS)

if __name__ == "__main__":
    sys.exit(main(program=PROGRAM))
