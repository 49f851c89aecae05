"""Tables and the progress bar."""

from composcope.terminal import print_table, progress_bar


def test_table_lines_do_not_wrap_in_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    rows = [
        {"run_id": "a" * 40, "loss": 0.123456, "kind": "cnn"},
        {"run_id": "b", "loss": float("nan"), "kind": None},
    ]
    print_table(rows)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].split() == ["run_id", "loss", "kind"]
    assert lines[1].split() == ["a" * 40, "0.1235", "cnn"]
    assert lines[2].split() == ["b", "-", "-"]


def test_table_columns_are_aligned(capsys):
    print_table([{"a": "x", "b": "1"}, {"a": "long", "b": "2"}])
    lines = capsys.readouterr().out.splitlines()
    assert [line.index(text) for line, text in zip(lines, "b12", strict=True)] == [6, 6, 6]


def test_short_work_prints_nothing_without_a_terminal(capsys):
    with progress_bar("training") as advance:
        advance(5, 10)
    printed = capsys.readouterr()
    assert not printed.out
    assert not printed.err


def test_the_time_left_is_not_guessed_from_the_first_moments(capsys, monkeypatch):
    clock = iter([0.0, 6.0])
    monkeypatch.setattr("composcope.terminal.time.monotonic", lambda: next(clock))
    with progress_bar("training") as advance:
        advance(1, 1000)
    assert capsys.readouterr().err == "training: 0% done\n"


def test_long_work_prints_a_line_now_and_then_without_a_terminal(capsys, monkeypatch):
    clock = iter([0.0, 4.0, 6.0, 20.0, 40.0])
    monkeypatch.setattr("composcope.terminal.time.monotonic", lambda: next(clock))
    with progress_bar("training") as advance:
        for done in (1, 2, 3, 4):  # at 4, 6, 20 and 40 seconds
            advance(done, 8)
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.splitlines() == [
        "training: 25% done, about 18 s left",
        "training: 50% done, about 40 s left",
    ]
