"""Freezes the problems of PLAS-Bench: resolves a study, solves its front, writes it with its check values to plas_bench/problems.

    python benchmarks/bench_problems.py NAME [NAME …]    those that are not there yet; without names all of them
    python benchmarks/bench_problems.py --sizes          designs, feasible share and members of each, from the files

A file that is there is never written again: version 1 does not change. What stands below is where each came from.
"""

import argparse
import hashlib
import sys
import time
from datetime import date
from typing import Any

import yaml
from plas_bench.definition import PROBLEMS as FOLDER
from plas_bench.definition import Check, Definition, FrozenFront, Table
from plas_bench.digests import canonical, sha256_of, sha256_of_keys
from plas_bench.instance import BenchProblem, bench_of, bench_problem
from plas_bench.kinds import KINDS, case_of
from plas_bench.tables import place_of

from nas.search.assembly import assemble

DESIGNS = 6  # of the check
BARE = {"baselines": [], "applications": {}, "default_budget": "none", "calibration": "datasheet"}
FREE = ("algo", "params", "seed", "evaluations", "time_limit", "stop_when_stable", "workers", "resources", "executor")
FREE += ("asynchronous", "evaluation_timeout", "known", "known_as", "seed_from", "baselines")
FREE += ("applications", "laws", "residual_sd", "constraints", "penalty_weight", "name")
ORIN, NANO, PHONE, BOARD = "jetson_agx_orin_64gb", "jetson_orin_nano_super_8gb", "snapdragon_8_elite", "raspberry_pi_5"
MIXED = {
    "name": "mixed",
    "description": "kinds of layers, head sizes and experts",
    "axes": {
        "depth": [8, 12, 16, 20, 24, 28, 32],
        "layers": [
            "full",
            {"period": [2, 4], "local": 512},
            {"period": 4, "linear": ["deltanet", "mamba2"]},
            {"period": 2, "conv": 3},
        ],
        "width": [768, 1024, 1280, 1536, 2048, 2560],
        "head_dim": [64, 128],
        "n_heads": [8, 16, 24],
        "n_experts": [1, 8, 16, 32],
        "top_k": [1, 2, 4],
        "expert_ffn_ratio": [0.5, 1, 2, 4],
        "n_kv_heads": [2, 8],
    },
    "conditions": {"min_query_ratio": 0.5, "max_query_ratio": 2},
}
KIND_SEEDS = (
    901,
    902,
)  # of the instances of a kind, that no strategy was tuned on: the first two whose front has twelve members or more
OTHER_SEEDS = {"rough_useless": (905, 907)}
KIND_WORDS = {
    "caches": "times jump where sizes of caches are passed",
    "alignment": "times jump where a size is no multiple of its tile",
    "values": "every value of every axis has an effect of its own",
    "value_pairs": "every pair of values of two pairs of axes has an effect of its own",
    "heavy": "noise with heavy tails and outliers",
    "cliff": "designs that need one operator take two to four times as long",
    "rough_wrong": "formulas that rank at 0.5, and a rough field",
    "rough_useless": "rough fields that the formulas do not rank at all",
    "mirrored": "formulas that are right of the design mirrored along an axis or two",
    "wrong_sign": "formulas that rank the wrong way round",
    "three": "jumps of caches and tiles, and memory as a third objective",
    "budgets": "cliffs and effects of values, within limits on what is measured",
}
CPU = {"precision": "fp32", "device": "x86_desktop_generic"}
EXTERNAL = {"external": True}


def table(title: str, study: dict[str, Any], evaluations: int = 50, **keys: Any) -> dict[str, Any]:
    """A problem over the rows of a table."""
    return {"title": title, "study": {**CPU, **study}, "evaluations": evaluations, "table": keys}


def analytic(title: str, evaluations: int = 1000, **study: Any) -> dict[str, Any]:
    """A problem of formulas."""
    return {"title": title, "study": study, "evaluations": evaluations}


def translators(board: str, name: str, device: str) -> dict[str, Any]:
    """Decoders of translation models with measured latency."""
    return table(
        f"translation models measured on a {name}, alike decoders averaged: decode time against a loss by formula",
        {"device": device, "input_tokens": 30, "output_tokens": 30, "objectives": ["decode_ms", "loss"]},
        file=f"latency/wmt14ende_cpu_{board}_all.csv",
        source="mit-han-lab/hardware-aware-transformers (MIT)",
        shape="translator",
        genes=["depth", "width", "expert_size"],
        measured={"decode_ms": "latency_mean_decoder"},
        **EXTERNAL,
    )


def trained(what: str, file: str, column: str, source: str) -> dict[str, Any]:
    """Dense models with a measured loss."""
    return table(
        what,
        {"law": "chinchilla_epoch", "objectives": ["loss", "train_flops"]},
        file=file,
        source=source,
        shape="dense",
        genes=["depth", "width", "tokens"],
        measured={"loss": column},
        **EXTERNAL,
    )


def of_kind(kind: str, seed: int) -> dict[str, Any]:
    """An instance of a frozen kind: loss and time are expensive, the formulas their priors."""
    case = case_of(kind, seed)
    budgets = {budget.metric: budget.limit for budget in case.analytic.budgets}
    study = {"objectives": list(KINDS[kind].objectives), "budgets": budgets}
    title = f"expensive loss and time with noise, the formulas as priors: {KIND_WORDS[kind]}"
    return {"title": title, "study": study, "evaluations": 100, "kind": {"name": kind, "seed": seed}}


SOURCES: dict[str, dict[str, Any]] = {
    "plas1-paper-loss-latency": analytic(
        "the paper's study: one request of 1,024 in and 16 out on Jetson AGX Orin", budgets={"memory_gb": 64}
    ),
    "plas1-paper-loss-tpot-budgets": analytic(
        "a phone's assistant, int8: speed of reading, a limit on the wait and on memory",
        device=PHONE,
        precision="int8",
        input_tokens=512,
        output_tokens=128,
        objectives=["loss", "tpot_ms"],
        budgets={"prefill_ms": 150, "resident_gb": 1.5},
    ),
    "plas1-paper-loss-prefill-decode": analytic(
        "a board without accelerator, int8: both phases apart",
        device=BOARD,
        precision="int8",
        input_tokens=128,
        output_tokens=64,
        objectives=["loss", "prefill_ms", "decode_ms"],
    ),
    "plas1-paper-four": analytic(
        "both phases and memory apart on Orin Nano",
        device=NANO,
        precision="int8",
        input_tokens=1024,
        output_tokens=128,
        objectives=["loss", "prefill_ms", "decode_ms", "resident_gb"],
    ),
    "plas1-paper-rare": analytic(
        "one design in seventy meets all limits, of loss, time and memory",
        device=NANO,
        input_tokens=512,
        output_tokens=64,
        objectives=["loss", "total_ms", "resident_gb"],
        budgets={"loss": 3.3, "resident_gb": 2, "total_ms": 800},
    ),
    "plas1-mixed-loss-latency": analytic(
        "kinds of layers without an order beside sizes with one: a long prompt on a phone",
        space=MIXED,
        device=PHONE,
        precision="int8",
        input_tokens=4096,
        output_tokens=64,
        attention="fused",
        causal=True,
        objectives=["loss", "total_ms"],
    ),
    "plas1-mixed-three": analytic(
        "kinds of layers beside sizes: a batch of 8 long prompts, with the memory that it takes",
        space=MIXED,
        device=ORIN,
        precision="int8",
        batch=8,
        input_tokens=4096,
        output_tokens=256,
        attention="fused",
        causal=True,
        objectives=["loss", "total_ms", "resident_gb"],
        budgets={"prefill_ms": 3000},
    ),
    "plas1-mixed-rare": analytic(
        "kinds of layers beside sizes, where one design in two hundred meets all limits",
        space=MIXED,
        device=NANO,
        precision="int8",
        input_tokens=4096,
        output_tokens=64,
        attention="fused",
        causal=True,
        objectives=["loss", "total_ms", "resident_gb"],
        budgets={"loss": 3.2, "resident_gb": 1.5, "total_ms": 2500},
    ),
    "plas1-fine-loss-latency": analytic(
        "1.27 billion designs, the paper's study", space="fine", budgets={"memory_gb": 64}
    ),
    "plas1-fine-loss-decode-budgets": analytic(
        "1.27 billion designs on a board without accelerator, int8, within a wait and memory",
        space="fine",
        device=BOARD,
        precision="int8",
        input_tokens=256,
        output_tokens=256,
        objectives=["loss", "decode_ms"],
        budgets={"resident_gb": 0.5, "prefill_ms": 3000},
    ),
    "plas1-fine-three": analytic(
        "1.27 billion designs for a robot, int8: loss, time of a request, memory, within limits",
        space="fine",
        device=NANO,
        precision="int8",
        objectives=["loss", "total_ms", "resident_gb"],
        budgets={"decode_ms": 500, "resident_gb": 6},
    ),
    "plas1-fine-four": analytic(
        "1.27 billion designs, both phases and memory apart, within limits",
        space="fine",
        device=NANO,
        precision="int8",
        objectives=["loss", "prefill_ms", "decode_ms", "resident_gb"],
        budgets={"total_ms": 50, "resident_gb": 0.4},
    ),
    "plas1-fine-rare": analytic(
        "1.27 billion designs of which one in some thousands meets all limits, of loss, time and memory",
        space="fine",
        device=NANO,
        precision="int8",
        input_tokens=512,
        output_tokens=64,
        objectives=["loss", "total_ms", "resident_gb"],
        budgets={"loss": 3.1, "resident_gb": 2, "total_ms": 500},
    ),
    "plas1-edge2026-loss-latency": analytic(
        "1.26 trillion designs with kinds of layers, many small experts and free heads, on a phone, int4",
        space="edge2026",
        device=PHONE,
        precision="int4",
        attention="fused",
        causal=True,
        complete=True,
        input_tokens=4096,
        output_tokens=128,
        budgets={"resident_gb": 8},
    ),
    "plas1-edge2026-three": analytic(
        "1.26 trillion designs on a phone, int4: both phases of a long prompt apart, within limits",
        space="edge2026",
        device=PHONE,
        precision="int4",
        attention="fused",
        causal=True,
        complete=True,
        input_tokens=4096,
        output_tokens=128,
        objectives=["loss", "prefill_ms", "tpot_ms"],
        budgets={"resident_gb": 0.5, "total_ms": 2500},
    ),
    "plas1-huge-loss-latency": analytic(
        "1.50 trillion designs, the paper's study", space="huge", budgets={"memory_gb": 64}
    ),
    "plas1-huge-three": analytic(
        "1.50 trillion designs on a graphics card: loss, time of a long prompt, parameters to store, within limits",
        space="huge",
        device="rtx_4090",
        input_tokens=4096,
        output_tokens=64,
        objectives=["loss", "total_ms", "params_total"],
        budgets={"resident_gb": 1.5, "total_ms": 20},
    ),
    "plas1-table-trained": table(
        "84 small models that this project trained, each loss and time measured; seeds averaged",
        {"input_tokens": 256, "output_tokens": 16, "vocabulary": 257, "objectives": ["loss", "total_ms"]},
        file="trained.csv",
        source="this project's trainings (docs/data/trained.csv, Apache-2.0)",
        genes=["depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads"],
        where={"tokens": "307200", "status": "ok"},
        measured={"loss": "loss", "total_ms": "total_ms"},
    ),
    "plas1-table-llama": table(
        "27 models measured with llama.cpp on two cores, f16: time to the first token and per token, loss by formula",
        {
            "precision": "fp16",
            "vocabulary": 8192,
            "input_tokens": 512,
            "output_tokens": 16,
            "objectives": ["prefill_ms", "tpot_ms", "loss"],
        },
        evaluations=20,
        file="llama_cpp.csv",
        source="this project's measurements (docs/llama-cpp.csv, Apache-2.0)",
        genes=["depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads"],
        measured={"prefill_ms": "prefill_ms", "tpot_ms": "tpot_ms"},
    ),
    "plas1-table-gpu": table(
        "191 small models that one H200 trained and timed, CUDA graphs: loss, a prompt, one step; seeds averaged",
        {
            "device": "h200",
            "precision": "fp16",
            "vocabulary": 257,
            "input_tokens": 1024,
            "output_tokens": 1,
            "objectives": ["loss", "prefill_ms", "decode_ms"],
        },
        file="gpu.csv",
        source="this project's trainings and measurements (docs/data/gpu_table.csv, Apache-2.0)",
        genes=["depth", "width", "n_experts", "expert_size", "n_kv_heads"],
        measured={"loss": "loss", "prefill_ms": "prefill_ms_graphs_b1", "decode_ms": "decode_ms_graphs_b1"},
    ),
    "plas1-table-translators-xeon": translators("xeon", "Xeon", "x86_desktop_generic"),
    "plas1-table-translators-pi": translators("raspberrypi", "Raspberry Pi", BOARD),
    "plas1-table-gemstones": trained(
        "22 dense models at many numbers of tokens, loss against training compute",
        "loss/gemstones_hot.csv",
        "final_loss",
        "mcleish7/gemstone-scaling-laws (MIT), arXiv 2502.06857",
    ),
    "plas1-table-morph": trained(
        "76 dense models of depth against width, loss against training compute",
        "loss/morph.csv",
        "loss",
        "Waterpine/open-lm-morph (MIT), arXiv 2501.18107",
    ),
}


def sources() -> dict[str, dict[str, Any]]:
    """Every problem of version 1 by name: those above, and the instances of the kinds over the paper's space."""
    of_kinds = {
        f"plas1-kind-{kind.replace('_', '-')}-{place}": of_kind(kind, seed)
        for kind in KIND_WORDS
        for place, seed in enumerate(OTHER_SEEDS.get(kind, KIND_SEEDS), 1)
    }
    return {**SOURCES, **of_kinds}


def frozen_study(keys: dict[str, Any]) -> dict[str, Any]:
    """Every key of a study with what it names embedded; what does not change its values is left out, and measured profiles, which are not used."""
    content = assemble({**BARE, **keys, "algo": "random"}, {}).resolved()
    for unused in ("profiles", "modes", "mode_source", "note"):
        content["device"].pop(unused, None)
    content |= {"baselines": [], "applications": {}}
    kept = {key: value for key, value in content.items() if key not in FREE or key in ("baselines", "applications")}
    kept["space"] = {
        **kept["space"],
        "axes": {name: shortened(values) for name, values in kept["space"]["axes"].items()},
    }
    return kept


def shortened(values: Any) -> Any:
    """A long list of equal steps as from, to, step."""
    if not (isinstance(values, list) and len(values) > 8 and all(isinstance(value, int) for value in values)):
        return values
    step = values[1] - values[0]
    if values != list(range(values[0], values[-1] + 1, step)):
        return values
    return {"from": values[0], "to": values[-1]} | ({} if step == 1 else {"step": step})


def frozen(name: str, given: dict[str, Any]) -> Definition:
    """The definition of a problem: its front solved, its values computed."""
    own = given.get("table")
    if own is not None:
        unseen = Table.model_validate({"sha256": "", **own})
        own = {**own, "sha256": hashlib.sha256(place_of(unseen).read_bytes()).hexdigest()}
    family = "table" if own else "kind" if given.get("kind") else "analytic"
    content = {
        "name": name,
        "version": 1,
        "family": family,
        "title": given["title"],
        "designs": 1,
        "evaluations": given["evaluations"],
        "frozen_on": date.today().isoformat(),
        "study": frozen_study(given["study"]),
        **({"table": own} if own else {}),
        **({"kind": given["kind"]} if given.get("kind") else {}),
    }
    nothing = {"check": {"genotypes": [], "objectives": [], "violations": []}}
    nothing["front"] = {"members": 0, "vectors": 0, "ideal": [], "nadir": [], "sha256": "", "keys_sha256": ""}  # type: ignore[assignment]
    draft = Definition.model_validate({**content, **nothing})
    bench = bench_of(draft)
    check, front = check_of(bench), front_figures(bench)
    return Definition.model_validate({**content, "designs": bench.size, "check": check, "front": front})


def check_of(bench: BenchProblem) -> Check:
    """Values at fixed designs, spread over the space."""
    genotypes = bench.sample(DESIGNS, seed=1)
    found = bench.evaluate(genotypes)
    return Check(
        genotypes=genotypes.tolist(),
        objectives=[[float(f"{v:.12g}") for v in row] for row in found.objectives.tolist()],
        violations=[[float(f"{v:.12g}") for v in row] for row in found.violations.tolist()],
    )


def front_figures(bench: BenchProblem) -> FrozenFront:
    """The exact front's size, ends and digest."""
    front = bench.front_of(bench.solved())
    vectors = canonical(front.values)
    ideal, nadir = front.values.min(axis=0).tolist(), front.values.max(axis=0).tolist()
    return FrozenFront(
        members=len(front.keys),
        vectors=len(vectors),
        ideal=ideal,
        nadir=nadir,
        sha256=sha256_of(vectors),
        keys_sha256=sha256_of_keys(front.keys),
    )


def written(found: Definition) -> str:
    """A definition as YAML."""
    content = found.model_dump(mode="json", exclude_none=True, exclude_defaults=False)
    content["study"] = found.study
    head = f"# {found.name}: frozen by benchmarks/bench_problems.py and never changed.\n"
    return head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=140, default_flow_style=None)


def sizes() -> None:
    """A line for each problem that is there."""
    for path in sorted(FOLDER.glob("*.yaml")):
        bench = bench_problem(path.stem)
        drawn = bench.evaluated(bench.sample(20_000, seed=0))
        front = bench.definition.front
        print(
            f"{bench.name:34} {bench.size:.4g} designs, feasible {drawn.feasible.mean():.2%}, front {front.members:,} ({front.vectors:,} different)"
        )


def main() -> None:
    """Freeze what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--try", dest="trial", action="store_true", help="solve and say, write nothing")
    arguments = parser.parse_args()
    if arguments.sizes:
        sizes()
        return
    known = sources()
    for name in arguments.names or known:
        path = FOLDER / f"{name}.yaml"
        if path.exists() and not arguments.trial:
            print(f"{name}: is there, not written again", file=sys.stderr)
            continue
        begun = time.monotonic()
        found = frozen(name, known[name])
        if not arguments.trial:
            path.write_text(written(found), encoding="utf-8")
        bench = bench_of(found)
        share = bench.evaluated(bench.sample(20_000, seed=0)).feasible.mean()
        front = found.front
        print(
            f"{name}: {bench.size:,} designs, feasible {share:.3%}, front {front.members:,} ({front.vectors:,}), {time.monotonic() - begun:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
