"""Stage `page` of the miniature headline: the table of trainings, the figures between the marks of results.md, its pictures.

What a stage has not made yet is said as missing; nothing is filled in.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr, ttest_ind

from nas.files.tables import write
from nas.study.catalogue import load_law
from objectives.loss_law.features import feature
from studies.headline.files import BASELINE, DOCS, LISTS, Folder, Row, rows, write_rows
from studies.headline.fitting import (
    LEVEL,
    agreement,
    architectures_of,
    correlations,
    holm,
    losses_of,
    means,
    of_parts,
    predictors,
    verdict,
    welch,
)
from studies.headline.pictures import draw_latency, draw_law
from studies.headline.search import QUESTIONS, predicted_times
from studies.headline.training import HEAD, PARTS, SEEDS, table

PAGE, TABLE = Path(__file__).with_name("results.md"), DOCS / "data" / "trained.csv"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
HOLDS, FAILS, OPEN = "holds here", "fails here", "is not decided"
SLOWER, BYTES_PER_TOKEN = 1.05, 4
GOOD_ERROR, GOOD_TAU = 0.15, 0.8
THREE = ("below 0", "above 0", "holding 0")


def write_page(folder: Folder) -> None:
    """Table, pictures, page."""
    found = table(folder)
    TABLE.parent.mkdir(exist_ok=True)
    write_rows(TABLE, found)
    if (folder / "law.yaml").exists():
        shutil.copyfile(folder / "law.yaml", TABLE.with_name("trained_law.yaml"))
    parts = [trainings(folder, found), *law_part(folder, found), *latency_part(folder), *contest_part(folder, found)]
    write(PAGE, filled(PAGE.read_text(encoding="utf-8"), parts))


def filled(page: str, parts: Sequence[str]) -> str:
    """A page with these parts between its marks; what stands around them stays."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{rest.partition(END)[2]}"


def trainings(folder: Folder, found: Sequence[Row]) -> str:
    """How many of each list are trained."""
    asked = {part: len(rows(LISTS / f"{part}.csv")) * len(seeds.split(",")) for part, (_, seeds) in PARTS.items()}
    asked[HEAD] = len(SEEDS.split(",")) * len(rows(folder / "lists" / f"{HEAD}.csv"))
    body = []
    for part, number in asked.items():
        own = of_parts(found, part)
        failed = sum(row["part"] == part and row["status"] != "ok" for row in found)
        spread = f"{losses_of(own).min():.4f} to {losses_of(own).max():.4f}" if own else ""
        body.append((part, f"{len(own)} of {number}", str(failed), spread))
    return markdown(("list", "trained", "without a loss", "loss, nats per byte"), body)


def law_part(folder: Folder, found: Sequence[Row]) -> list[str]:
    """Forms, verdict, held-out ranks, the order at twice the tokens."""
    if not (folder / "law.yaml").exists():
        return ["*The law: not fitted yet.*"]
    law = load_law(str(folder / "law.yaml"))
    forms = rows(folder / "forms.csv")
    body = [(f["name"], f["coefficients"], f"{float(f['rmse']):.4f}", f"{float(f['bic']):.0f}") for f in forms]
    lines = (folder / "law.txt").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Verdict"))
    said = "\n".join(lines[start : start + 1 + lines[start + 1 :].index("")])
    parts = [
        "### The law",
        markdown(("form", "coefficients", "RMSE over ten folds, nats", "BIC"), body),
        f"Chosen: **{law.description}**. What `plas fit` says of it:",
        f"```text\n{said}\n```",
        slopes(folder),
    ]
    held_out = of_parts(found, "held_out")
    if len(held_out) < len(rows(LISTS / "held_out.csv")):
        return [*parts, "*Held-out architectures: not all trained yet.*"]
    known, loss = predictors(law, held_out), losses_of(held_out)
    each, gain = correlations(loss, known)
    shown = {"below 0": "refuted", "above 0": "shown", "holding 0": "not shown"}[verdict(*gain[1:], THREE)]
    off = float(np.sqrt(np.mean((known["the fitted law"] - loss) ** 2)))
    draw_law(known["the fitted law"], loss, architectures_of(held_out).n_experts > 1)
    ranks = [(name, interval(value)) for name, value in each.items()]
    parts += [
        "### Sixteen architectures it never saw",
        markdown(("ordered by", "Spearman's correlation with the trained loss, 95 % interval"), ranks),
        f"That the law knows more than the size is **{shown}**: {interval(gain)} over the better of the two counts. "
        f"Its predictions are off by {off:.4f} nats (RMSE).",
        "![Predicted and trained loss of the held-out architectures](images/headline-law.png)",
    ]
    return [*parts, *longer_part(found)]


def slopes(folder: Folder) -> str:
    """What doubling a quantity does to the loss by the form of logarithms, with its bootstrap intervals."""
    report = json.loads((folder / "fits" / "log_linear.json").read_text(encoding="utf-8"))["coefficients"]
    body = []
    for name, told in report.items():
        if name != "constant":
            each = [np.log(2.0) * number for number in (told["value"], *told["bootstrap"])]
            does = verdict(each[1], each[2], ("lowers the loss", "raises the loss", "cannot be told"))
            body.append((name.removesuffix("_slope").replace("_", " "), interval(each, 4), does))
    return "By the form of logarithms, whichever was chosen:\n\n" + markdown(("twice", "nats, 95 % interval", ""), body)


def longer_part(found: Sequence[Row]) -> list[str]:
    """Whether twice the tokens keep the order."""
    once = {row["id"]: float(row["loss"]) for row in of_parts(found, "training")}
    pairs = [(once[row["id"]], float(row["loss"])) for row in of_parts(found, "longer") if row["id"] in once]
    if len(pairs) < 3:
        return []
    short, long = np.array(pairs).T
    return [
        f"At twice the tokens {len(pairs)} architectures fall by {np.mean(short - long):.4f} nats in the mean; the order of both "
        f"lengths agrees with a Spearman's correlation of {float(spearmanr(short, long).statistic):.2f}."
    ]


def latency_part(folder: Folder) -> list[str]:
    """Predicted against measured times of the held-out architectures."""
    record = rows(folder / "measured" / "lists" / "measured.csv")
    if not record or not (folder / "calibrated.yaml").exists():
        return ["*Latency: not measured yet.*"]
    held_out = rows(LISTS / "held_out.csv")
    predicted, body, good, drawn = predicted_times(folder, held_out), [], True, {}
    for name in ("prefill_ms", "tpot_ms"):
        values = {row["model"]: float(row["value"]) for row in record if row["metric"] == name}
        measured = np.array([values[row["id"]] for row in held_out])
        off, tau = agreement(predicted[name], measured)
        good &= off <= GOOD_ERROR and tau >= GOOD_TAU
        drawn[name] = (predicted[name], measured)
        body.append((name, f"{measured.min():.3g} to {measured.max():.3g}", f"{100 * off:.1f} %", f"{tau:.2f}"))
    draw_latency(drawn)
    contended = sum(row.get("contended") == "yes" for row in record)
    return [
        "### Latency",
        markdown(("held out", "measured, ms", "median error", "Kendall's tau"), body),
        f"By the rule the latency model is {'' if good else 'not '}good enough to choose between such models here "
        f"({processor_of(folder)}, {record[0].get('engine', 'PyTorch')}; {contended} of {len(record)} rows contended).",
        "![Predicted and measured times of the held-out architectures](images/headline-latency.png)",
    ]


def processor_of(folder: Folder) -> str:
    """The machine's name in its own device file."""
    line = (folder / "board.yaml").read_text(encoding="utf-8").splitlines()[0]
    return line.partition(":")[2].strip()


def contest_part(folder: Folder, found: Sequence[Row]) -> list[str]:
    """Baseline and picks: shapes, losses, times, verdicts."""
    own, picks, base = of_parts(found, HEAD), rows(folder / "picks.csv"), rows(BASELINE)[0]
    trained = means(own)
    contenders = [base, *picks]
    lacking = [row["id"] for row in contenders if len(trained.get(row["id"], ())) < len(SEEDS.split(","))]
    times = {row["id"]: float(row["total_ms"]) for row in own if row["total_ms"]}
    if not picks or lacking or len(times) < len(contenders):
        return ["*Head to head: not searched, trained or measured yet.*"]
    sizes = feature(architectures_of(contenders), "parameters")
    body = [
        (row.get("questions", "").replace(" ", ", ") or "baseline", shape_of(row), f"{size / 1e6:.2f} M",
         f"{times[row['id']]:.2f}", f"{trained[row['id']].mean():.4f} ± {trained[row['id']].std(ddof=1):.4f}")
        for row, size in zip(contenders, sizes, strict=True)
    ]  # fmt: skip
    parts = [
        "### Head to head",
        markdown(("pick", "architecture", "parameters", "measured total, ms", "loss, mean ± sd of the seeds"), body),
    ]
    answered = {question: row["id"] for row in picks for question in row["questions"].split()}
    for question in QUESTIONS:
        if question not in answered:
            parts.append(f"`{question}`: no architecture of its shortlist was measured to be as fast.")
            continue
        parts.append(duel(question, answered[question], base["id"], trained, times))
    parts.append(adjusted({q: trained[answered[q]] for q in QUESTIONS if q in answered}, trained[base["id"]]))
    if {"equal_latency", "largest"} <= set(answered) and answered["equal_latency"] != answered["largest"]:
        gain = welch(trained[answered["equal_latency"]], trained[answered["largest"]])
        parts.append(
            f"`equal_latency` against `largest`: {interval(gain, 4)} nats, an interval {verdict(*gain[1:], THREE)}."
        )
    return parts


def duel(question: str, ours: str, theirs: str, trained: Mapping[str, np.ndarray], times: Mapping[str, float]) -> str:
    """One pick against the baseline in a sentence, by the rule."""
    gain = welch(trained[ours], trained[theirs])
    outcome = verdict(*gain[1:], (HOLDS, FAILS, OPEN))
    share = times[ours] / times[theirs]
    if outcome == HOLDS and share > SLOWER:
        outcome = FAILS
    percent = tuple(100 * np.expm1(value) for value in gain)
    token = 100 * np.expm1(BYTES_PER_TOKEN * gain[0])
    return (
        f"`{question}`: the headline **{outcome}**. Loss {interval(gain, 4)} nats of the baseline's at {share:.2f} of its time: "
        f"perplexity per byte {percent[0]:+.1f} % ({percent[1]:+.1f} to {percent[2]:+.1f}), {token:+.1f} % per token of four bytes."
    )


def adjusted(losses: Mapping[str, np.ndarray], theirs: np.ndarray) -> str:
    """Every pick against the baseline, alone and as one of several: Bonferroni's intervals and Holm's p values."""
    several, seeds = len(losses), len(theirs)
    p_values = [float(ttest_ind(ours, theirs, equal_var=False).pvalue) for ours in losses.values()]
    body = []
    for (name, ours), p, both in zip(losses.items(), p_values, holm(p_values), strict=True):
        alone, wide = welch(ours, theirs), welch(ours, theirs, 1 - (1 - LEVEL) / several)
        said = verdict(*wide[1:], (HOLDS, FAILS, OPEN))
        body.append(
            (f"`{name}`", interval(alone, 4), f"{wide[1]:.4f} to {wide[2]:.4f}", f"{p:.4f}", f"{both:.4f}", said)
        )
    head = (
        "pick",
        "nats of the baseline's, 95 %",
        f"95 % of all {several} together (Bonferroni)",
        "p",
        "p (Holm)",
        "by Bonferroni",
    )
    return (
        f"These are {several} tests of {seeds} seeds each on one text. The rule that was fixed before looks at each alone; adjusted for the number of tests:\n\n"
        + markdown(head, body)
    )


def shape_of(row: Row) -> str:
    """An architecture in a few letters."""
    experts = "dense" if row["n_experts"] == "1" else f"E {row['n_experts']} K {row['top_k']}"
    return f"l {row['depth']}, d {row['width']}, {experts}, m {row['expert_size']}, n_kv {row['n_kv_heads']}"


def interval(value: Sequence[float], digits: int = 2) -> str:
    """A value with its interval."""
    return f"{value[0]:.{digits}f} ({value[1]:.{digits}f} to {value[2]:.{digits}f})"


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
