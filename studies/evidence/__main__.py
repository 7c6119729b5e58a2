"""Does one law, pooled over what many laboratories trained, order designs of a laboratory that it has not seen?

    python -m studies.evidence [--published NAME=FILE …] [--json] [--write-law evidence.yaml]      minutes

Each laboratory is judged by the law of the others. --published adds tables of `plas list evidence` that have no rows here; --write-law writes
the law of all tables, whose draws are as much wider as laboratories left out need.
"""

import argparse
from pathlib import Path

from plas_evidence import tables
from plas_evidence.judging import QUESTIONS, table_record

from nas.files.tables import write
from nas.files.yaml_source import dump
from nas.terminal.console import Stages
from nas.terminal.tables import show
from studies.evidence.document import left_out_document
from studies.evidence.left_out import EVIDENCE, laws_left_out, left_out, pooled_law


def main() -> None:
    """Leave out, judge, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--published", action="append", default=[])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write-law", type=Path)
    given = parser.parse_args()
    stage, chosen = Stages(quiet=given.json), [*tables.base(), *tables.published(tuple(given.published))]
    without = left_out(chosen, stage)
    if given.write_law is not None:
        write(given.write_law, "# Pooled by studies.evidence.\n" + dump(pooled_law(chosen, without).mapping()))
    laws, own, records = tables.laws_by_name(()), laws_left_out(without), []
    for source in chosen:
        stage(f"{source.name}: {len(source.table)} models")
        records.append(table_record(source, laws | {EVIDENCE: own[source.laboratory]}, list(QUESTIONS)))
    stage.close()
    show(left_out_document(records), as_json=given.json)


if __name__ == "__main__":
    main()
