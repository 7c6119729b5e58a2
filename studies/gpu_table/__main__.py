"""A table of trainings and measurements made on one GPU: 192 byte-level models, each trained on the same text and timed.

    python -m studies.gpu_table design                    the lists again, and whether they are the committed ones
    python -m studies.gpu_table.machine pilot --out FOLDER --data FOLDER --seconds 30     rates of 1, 8 and 14 trainings at once, three peaks
    python -m studies.gpu_table.machine run --out FOLDER --data FOLDER --seconds 380 --tokens N --peak RATE
    python -m studies.gpu_table judge FOLDER [--docs]     the table, and what law and roofline are worth on it

`--data` is a folder with the token files of `plas train --data stdlib`. FOLDER is appended to line by line, so that what a kill leaves is whole.

Fixed before anything ran:

- Designs: every combination of depth 2, 4, 6, 8; width 128, 192, 256, 384; 1 expert, or 4 of which a token goes to one; FFN of 1, 2 and 4 widths; one KV head, or as
  many as heads of 64 (`study.yaml`). The 128 with FFNs of 1 and 4 widths, and 16 of them a second time with another seed, are trained first, in one random order; then the 64 with
  2 widths, in random order, while time is left (`designs.csv`, `order.csv`). What has not ended when the time is over is not in the table.
- Recipe (`recipe.yaml`): batches of 32 sequences of 256 bytes, warm-up over 5 % of the steps, then a constant rate, so that the loss after a quarter and a half of the tokens
  is that of a training which ends there (its warm-up was as long as the whole one's). bf16 products, fp32 weights.
- Pilot: four shapes with three peaks (2e-3, 4e-3, 8e-3 at width 128), and two more at 4e-3, train at once. The peak is the one with the lowest sum over the four shapes of the mean training
  loss over the last tenth of the steps that all three of a shape have reached; one whose loss is no number is out.
- Tokens: the most of 1, 2, 3, 4, 6, 8, 12 times 2^20 with which the 144 trainings are predicted to end within 85 % of the training time. Predicted: trainings times tokens times the mean over the
  four shapes, at the chosen peak, of 1/(14 rates) while 14 train at once.
- Times before any training, the GPU otherwise idle: bf16, a prompt of 1,024 bytes, 16 steps after it; batch 1 called one by one, batch 1 as CUDA graphs, batch 16 as graphs; two rounds
  over all designs in random order, medians over both rounds' repetitions. At most 20 % of the seconds are measured.
- Revised after a first pilot on an H200 and before any training of the table: experts went one after another there at 4,000 to 15,000 tokens a second (dense designs at 77,000 to 231,000), so that
  1 x 2^20 tokens would have taken 787 s of 300; since then few experts compute every token. Seen: the pilot's rates and training losses of at most 681 steps.
- Judged: Spearman's rank correlations of the paper's law with the losses and of the GPU's datasheet roofline with each time, over designs with both; what a quarter and a half of the tokens say of the
  end; the deviation between two seeds beside the deviation between designs.
"""

import argparse
from pathlib import Path

from studies.gpu_table.design import design
from studies.gpu_table.judging import judge


def main() -> None:
    """One of the stages that need no GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stages = parser.add_subparsers(dest="stage", required=True)
    stages.add_parser("design")
    judging = stages.add_parser("judge")
    judging.add_argument("folder", type=Path)
    judging.add_argument("--docs", action="store_true", help="write docs/data/gpu_table.csv")
    given = parser.parse_args()
    if given.stage == "design":
        design()
    else:
        judge(given.folder, docs=given.docs)


if __name__ == "__main__":
    main()
