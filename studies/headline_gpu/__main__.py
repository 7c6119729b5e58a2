"""The headline on one GPU: shapes that two laws pick at a baseline's predicted time and memory, trained beside it.

    python -m studies.headline_gpu design                      the lists again, and whether they are the committed ones

Rules and predictions are in studies/headline_gpu/design.md.
"""

import argparse

from studies.headline_gpu.design import design


def main() -> None:
    """Carry out what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stages = parser.add_subparsers(dest="stage", required=True)
    stages.add_parser("design")
    parser.parse_args()
    design()


if __name__ == "__main__":
    main()
