"""One document, four renderings: what is in it is in each of them."""

import json

import pytest

from nas.document.document import Column, Document, Figure, Section, Table, figures, markdown, table_of
from nas.pages.page import section_html
from nas.terminal.tables import section_lines, show

TABLE = Table(
    (Column("model", words=True), Column("loss", "nats", ".4f"), Column("note")),
    (("a|b", 2.89533, None), ("<c>", float("nan"), "no value")),
    title="Losses",
    notes=("* extrapolated",),
)
DOCUMENT = Document(
    "A result",
    (
        Section("First", ("One sentence.", "Another one.", TABLE, "After the table.")),
        Section("Picture", (Figure("frontier", "Loss over time", b"png"),), folded=True),
    ),
    {"loss": 2.89533},
)


def terminal(section: Section) -> str:
    return "\n".join("".join(line) for line in section_lines(section))


def test_figures_are_written_as_their_column_says() -> None:
    assert TABLE.header == ("model", "loss (nats)", "note")
    assert TABLE.texts == (("a|b", "2.8953", ""), ("<c>", "-", "no value"))


@pytest.mark.parametrize("said", ["First", "One sentence.", "Another one.", "Losses", "2.8953", "* extrapolated"])
def test_each_rendering_holds_everything(said: str) -> None:
    first = DOCUMENT.sections[0]
    for rendered in (markdown(DOCUMENT), section_html(first), terminal(first)):
        assert said in rendered


def test_markdown_is_a_document_of_its_own() -> None:
    lines = markdown(DOCUMENT).splitlines()
    assert lines[0] == "# A result"
    assert r"| a\|b | 2.8953 |  |" in lines
    assert "One sentence.  " in lines  # a line of its own in the paragraph
    assert "![Loss over time](plots/frontier.png)" in lines


def test_html_escapes_text_and_folds_what_is_folded() -> None:
    page = "".join(map(section_html, DOCUMENT.sections))
    assert "&lt;c&gt;" in page
    assert "<c>" not in page
    assert page.count("<details") == 1
    assert 'alt="Loss over time"' in page


def test_a_terminal_shows_no_pictures_and_nothing_is_wider_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    long = Section("Long", ("A sentence that is much longer than the screen on which it will be shown.", TABLE))
    assert all(len("".join(line)) <= 44 for line in section_lines(long))
    assert terminal(DOCUMENT.sections[1]) == "Picture"


def test_columns_are_shared_by_their_heads() -> None:
    table = table_of(("architecture", "loss (nats)"), [("16 layers", 2.5)])
    assert table.columns[0].words
    assert table.columns[0].narrow == "below"
    assert table.texts == (("16 layers", "2.5"),)
    assert DOCUMENT.data["loss"] == 2.89533


def test_an_empty_section_is_no_section_of_a_page() -> None:
    assert section_html(Section("Nothing", ())) == section_html(Section("Files", (Figure("ranks", "ranks"),))) == ""
    with pytest.raises(StopIteration):
        DOCUMENT.section("missing")


def test_a_document_is_printed_or_its_data_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    show(DOCUMENT)
    assert capsys.readouterr().out.splitlines()[:2] == ["First", "  One sentence."]
    show(DOCUMENT, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"loss": 2.89533}


def test_columns_that_a_narrow_screen_goes_without_are_left_out_the_last_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    spare = (Column(name, narrow="left out") for name in ("earlier column", "later column"))
    table = Table((Column("name of a row", words=True), *spare, Column("kept")), (("a", 1.0, 2.0, 3.0),))
    text = terminal(Section("", (table,)))
    assert "earlier column" in text.splitlines()[0]
    assert "No room here for later column: " in text


def test_figures_are_columns_of_a_format_each() -> None:
    table = Table(figures({"order %": ".1f", "pairs": ","}), ((86.94, 12345), (float("nan"), 5)))
    assert table.texts == (("86.9", "12,345"), ("-", "5"))
    assert terminal(Section("", (table,))).splitlines()[2].split() == ["-", "5"]


def test_a_matrix_stands_close_and_words_at_the_end_to_the_left() -> None:
    columns = tuple(map(Column, ("", "a", "b")))
    rows = (("1", "=", "+19%"), ("2", ".036", "="))
    assert terminal(Section("", (Table(columns, rows, matrix=True),))).splitlines() == [
        "       a    b",
        "  1    = +19%",
        "  2 .036    =",
    ]
    words = Table((Column("case"), Column("design", words=True)), (("a", "1 dense"), ("b", "2 of eight experts")))
    assert terminal(Section("", (words,))).splitlines()[:2] == ["  case  design", "  a     1 dense"]
    assert '<td class="words">1 dense</td>' in section_html(Section("Designs", (words,)))
