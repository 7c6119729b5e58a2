"""The documentation's samples: every block is run or says why not, and what is printed is what a page shows."""

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("samples_of_pages", Path(__file__).with_name("samples.py"))
assert _spec is not None
assert _spec.loader is not None
samples = importlib.util.module_from_spec(_spec)
sys.modules["samples_of_pages"] = samples
_spec.loader.exec_module(samples)


@pytest.mark.parametrize("page", samples.PAGES)
def test_every_block_is_run_or_says_why_not(page: str) -> None:
    blocks = samples.blocks_of((samples.ROOT / page).read_text(encoding="utf-8"))
    assert [(block.start, block.lines[:1]) for block in blocks if block.kind == "unknown"] == []
    for block in blocks:
        assert all(block.marks.values()), f"line {block.start}: a mark says nothing"


@pytest.mark.samples
@pytest.mark.parametrize("page", samples.PAGES)
def test_a_page_shows_what_is_printed(page: str) -> None:
    wrong = samples.checked(page)
    assert not wrong, "\n".join(["run: python tests/docs/samples.py " + page, *wrong])


PAGE = r"""# A page

<!-- setup: echo one > a.txt
printf '  two\n' >> a.txt -->
```
$ cat a.txt
one
  two
$ echo took \
    3 s
took 4 s
```

<!-- file: hello.py -->
```python
print("hello")
```

- in a list
  ```bash
  python hello.py
  ```

<!-- exit: 3 -->
```bash
exit 3
```

<!-- from: seq 1 40 | sed 's/^20$//' -->
```
18
19
```

<!-- not run: needs a GPU -->
```bash
nvidia-smi
```

```text
an illustration
```
"""


def test_a_page_that_is_right_is_left_as_it_is() -> None:
    assert samples.renewed(PAGE) == (PAGE, [])


@pytest.mark.parametrize(
    ("right", "stale"),
    [
        ("one\n  two", "one\nthree"),
        ("one\n  two", "one"),
        ("18\n19", "18\n21"),
        ("18\n19", "18"),
        ("took 4 s", "took 4 m"),
    ],
)
def test_a_stale_sample_is_put_right(right: str, stale: str) -> None:
    after, wrong = samples.renewed(PAGE.replace(right, stale))
    assert after == PAGE.replace("took 4 s", "took 3 s") if "took" in right else after == PAGE
    assert wrong == []


@pytest.mark.parametrize(
    ("right", "broken", "said"),
    [
        ("exit: 3", "exit: 2", "ended with exit code 3"),
        ('print("hello")', "1 / 0", "ended with exit code 1"),
        ("  python hello.py", "  echo Traceback", "Traceback"),
        ("setup: echo", "setup: false; echo", "setup ended with exit code 1"),
    ],
)
def test_a_block_that_fails_is_said(right: str, broken: str, said: str) -> None:
    _, wrong = samples.renewed(PAGE.replace(right, broken))
    assert any(said in line for line in wrong), wrong


ANSWER = r"""<!-- setup: printf 'head\nBest design: 8 layers\n  Loss 2.5 nats (error\n  unknown)\nWarning: not measured, typical\n' > a.txt -->
<!-- shows: Best design
nats (error unknown) -->
```
$ cat a.txt
…
Best design: 8 layers
  Loss 2.5 nats (error
  unknown)
Warning: not measured, …
```

<!-- shows: 8 layers -->
```bash
cat a.txt
```
"""


def test_an_answer_with_its_phrases_and_cautions_is_left_as_it_is() -> None:
    assert samples.renewed(ANSWER) == (ANSWER, [])


@pytest.mark.parametrize(
    ("right", "other", "said"),
    [
        ("shows: Best design", "shows: Best model", "expected 'Best model', got none"),
        ("nats (error unknown)", "nats (error known)", "expected 'nats (error known)', got none"),
        ("shows: 8 layers", "shows: 9 layers", "expected '9 layers', got none"),
        ("Warning: not measured, …", "…", "… leaves out 'Warning: not measured, typical'"),
        (
            "Best design: 8 layers\n  Loss 2.5 nats (error\n  unknown)\nWarning",
            "Best design: 8 layers\n…\nWarning",
            "nats (error unknown)",
        ),
    ],
)
def test_a_phrase_that_is_not_printed_and_a_caution_that_is_cut_are_said(right: str, other: str, said: str) -> None:
    """The page as it was printed is right but for what it does not say."""
    before = ANSWER.replace(right, other, 1)
    after, wrong = samples.renewed(before)
    assert (after, len(wrong)) == (before, 1)
    assert said in wrong[0]


def test_a_caution_that_a_page_has_shown_may_be_cut_below() -> None:
    again = ANSWER + "\n```\n$ cat a.txt | tac\n…\nhead\n```\n"
    assert samples.renewed(again) == (again, [])


@pytest.mark.parametrize("unmarked", ["```\nplain\n```", "```sh\nls\n```"])
def test_a_block_of_no_known_kind_is_seen(unmarked: str) -> None:
    assert samples.blocks_of(unmarked)[0].kind == "unknown"


@pytest.mark.parametrize(
    ("sample", "printed", "after"),
    [
        (["a", "…", "d 1"], ["a", "b", "c", "d 2"], ["a", "…", "d 2"]),
        (["…", "total 5", "…"], ["x", "total 7", "y"], ["…", "total 7", "…"]),
        (["a", "…"], ["a"], ["a", "…"]),
        (["board, …; calibrated"], ["board, fp16; calibrated"], ["board, …; calibrated"]),
        (["board, …; calibrated"], ["board, fp16; datasheet"], ["board, fp16; datasheet"]),
        (["done in 3 s at 0.1.2"], ["done in 14 s at 0.2.0"], ["done in 3 s at 0.1.2"]),
        (["decode 3 ms"], ["decode 4 ms"], ["decode 4 ms"]),
        (["a", "b", "c"], ["a"], ["a"]),
        (["gone", "…"], [], ["…"]),
        (["name  ms", "a      1"], ["name   ms", "a       1"], ["name   ms", "a       1"]),
        (["name  time", "a      1 s"], ["name    time", "a       10 s"], ["name  time", "a      1 s"]),
    ],
)
def test_a_sample_is_what_was_printed_with_its_elisions(
    sample: list[str], printed: list[str], after: list[str]
) -> None:
    assert samples.updated(sample, printed) == after


def test_an_excerpt_ends_with_its_section() -> None:
    printed = ["Metrics", "  1", "", "Loss", "  depth 0.1", "  width 0.2", "", "Prefill"]
    assert samples.updated(["Loss", "  depth 0.3"], printed, excerpt=True) == ["Loss", "  depth 0.1", "  width 0.2"]
    assert samples.updated(["Loss", "  depth 0.1", "…"], printed, excerpt=True) == ["Loss", "  depth 0.1", "…"]
    assert samples.updated(["Metrics", "…", "Loss", "…"], printed, excerpt=True) == ["Metrics", "…", "Loss", "…"]


def test_a_page_whose_command_fails_now_is_not_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "```\n$ cat a.txt\none\n```\n\n```\n$ seq 2\n1\n```\n"
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    monkeypatch.setattr(samples, "ROOT", tmp_path)
    (fault,) = samples.checked("page.md", rewrite=True)
    assert fault.startswith("line 1: $ cat a.txt\nended with exit code 1:")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page


def test_a_page_may_show_how_a_command_fails() -> None:
    page = "```\n$ cat a.txt\ncat: a.txt: No such file or directory\n```\n"
    assert samples.renewed(page) == (page, [])
