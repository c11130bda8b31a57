"""`python -m gala_tta`: the program where there is one, and export."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from gala_tta import _program

NETWORK = """
from torch import nn

def make():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(4, 2))
"""


def call(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "GALA_PROGRAM"}
    return subprocess.run(
        [sys.executable, "-m", "gala_tta", *words],
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """One that says what it was given and ends with 3."""
    path = tmp_path / "gala"
    path.write_text('#!/bin/sh\necho "given: $*"\nexit 3\n')
    path.chmod(0o755)
    return path


def test_words_and_exit_code_are_the_programs(program: Path, tmp_path: Path) -> None:
    ending = call("adapt", "--data", "x y", cwd=tmp_path, GALA_PROGRAM=str(program))
    assert ending.stdout == "given: adapt --data x y\n"
    assert ending.returncode == 3


def test_the_program_is_found_by_its_order(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GALA_PROGRAM", raising=False)
    monkeypatch.setattr(_program, "_beside", lambda: [tmp_path / "beside"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _program.find_program() == program
    beside = tmp_path / "beside"
    beside.write_text("#!/bin/sh\n")
    assert _program.find_program() == program  # what cannot be run is none
    beside.chmod(0o755)
    assert _program.find_program() == beside
    monkeypatch.setenv("GALA_PROGRAM", str(program))
    assert _program.find_program() == program
    monkeypatch.setenv("GALA_PROGRAM", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"GALA_PROGRAM=.*nowhere is no program"):
        _program.find_program()


def test_without_a_program_it_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GALA_PROGRAM", raising=False)
    monkeypatch.setattr(_program, "_beside", lambda: [tmp_path / "beside"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _program.main(["adapt"]) == 2
    said = capsys.readouterr().err
    assert "the program gala is not there" in said
    assert str(tmp_path / "beside") in said
    assert "make build" in said
    assert _program.main(["--help"]) == 0
    assert "export" in capsys.readouterr().out


def test_export_writes_a_network(tmp_path: Path) -> None:
    (tmp_path / "mynet.py").write_text(NETWORK)
    ending = call("export", "mynet.py:make", "net.pt2", "--size", "16", cwd=tmp_path)
    assert ending.returncode == 0, ending.stderr
    assert "images of 16 x 16" in ending.stdout
    with zipfile.ZipFile(tmp_path / "net.pt2") as archive:
        assert any(name.endswith("gala.json") for name in archive.namelist())
    refused = call("export", "mynet.py:mak", "other.pt2", cwd=tmp_path)
    assert refused.returncode != 0
    assert "has no function mak" in refused.stderr
    helped = call("export", "--help", cwd=tmp_path)
    assert "python -m gala_tta export" in helped.stdout
