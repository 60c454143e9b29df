"""What `make faults` says that it did is what its tests noted."""

from __future__ import annotations

from tests import at_length
from tests.faults import __main__ as faults


def test_notes_are_added_up_and_too_little_is_said(tmp_path, monkeypatch, capsys):
    """Every figure has its limit; one that falls short, or a command over 350 MB, is named."""
    monkeypatch.setenv("SESSIOND_TALLY", str(tmp_path))
    for what, least, _ in faults.FIGURES:
        at_length.count(what, least - 1)
        at_length.count(what, True)
    at_length.peak(200 << 10, "sess list")
    assert faults._report(tmp_path, 1.0)
    assert "FEWER" not in capsys.readouterr().out
    at_length.peak(351 << 10, "sess list --all")
    at_length.count("kills", -1)
    assert not faults._report(tmp_path, 1.0)
    said = capsys.readouterr().out
    assert "      499  processes killed with kill -9: FEWER THAN 500" in said
    assert "   351 MB  sess list --all: TOO MUCH MEMORY" in said
