"""Files are replaced whole or not at all."""

import os
import stat

import pytest

from composcope import files
from composcope.files import write_atomically


def test_contents_are_replaced_and_nothing_is_left_behind(tmp_path):
    path = tmp_path / "file"
    for content in (b"first", b"second"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_the_old_contents(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def die(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_is_synced_before_the_rename_and_the_folder_after(tmp_path, monkeypatch):
    steps = []
    sync, replace = os.fsync, os.replace

    def watched_sync(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def watched_replace(source, target):
        steps.append("rename")
        replace(source, target)

    monkeypatch.setattr(files.os, "fsync", watched_sync)
    monkeypatch.setattr(files.os, "replace", watched_replace)
    write_atomically(tmp_path / "file", b"contents")
    assert steps == ["file", "rename", "folder"]


def test_only_a_file_that_no_link_leads_to_is_regular(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("contents")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    assert files.is_regular(tmp_path / "folder" / "file")
    assert not files.is_regular(tmp_path / "link" / "file")
    assert not files.is_regular(tmp_path / "folder")
