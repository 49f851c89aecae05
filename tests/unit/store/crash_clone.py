"""A model of what a disk may hold after a power failure, built from the file operations of the process.

It watches `os` while a store is written: a file's contents count once the file was synced, a name once its folder was.
What was not synced when the power failed may or may not be on the disk: a clone keeps, of every folder, the changes up
to some moment between its last sync and now, and of every file that was not synced nothing.
"""

import os
import random
import shutil
import stat
from pathlib import Path


class File:
    def __init__(self):
        self.synced = b""


class Folder:
    """The names that a folder has after a power failure at the earliest, and what was changed since."""

    def __init__(self):
        self.synced = {}
        self.changes = []

    def names(self, kept=None):
        names = dict(self.synced)
        for name, node in self.changes[:kept]:
            if node is None:
                names.pop(name, None)
            else:
                names[name] = node
        return names


class Disk:
    """The folder `root`, watched. `on_change` is called after every operation that changes what is synced or not."""

    def __init__(self, root, monkeypatch, on_change=lambda: None):
        self.root, self.top, self.on_change = Path(root), Folder(), on_change
        self.real = {name: getattr(os, name) for name in ("mkdir", "rename", "replace", "fsync", "unlink")}
        for name in ("mkdir", "rename", "replace", "fsync", "unlink"):
            monkeypatch.setattr(os, name, getattr(self, name))
        tree = shutil.rmtree
        monkeypatch.setattr(shutil, "rmtree", lambda path, *a, **k: self.remove(tree, path, *a, **k))

    def inside(self, path):
        return Path(os.path.abspath(path)).is_relative_to(self.root)

    def find(self, path, make=File):
        """The node at a path; a file that was created without our seeing it is added now."""
        node = self.top
        parts = Path(os.path.abspath(path)).relative_to(self.root).parts
        for index, part in enumerate(parts):
            names = node.names()
            if part not in names:
                node.changes.append((part, make() if index == len(parts) - 1 else Folder()))
            node = node.names()[part]
        return node

    def change(self, path, node):
        if self.inside(path):
            self.find(Path(path).parent, Folder).changes.append((Path(path).name, node))

    def mkdir(self, path, *arguments, **options):
        self.real["mkdir"](path, *arguments, **options)
        if self.inside(path):
            self.change(path, Folder())
            self.on_change()

    def move(self, name, source, target):
        node = self.find(source) if self.inside(source) else None
        self.real[name](source, target)
        if node is not None:
            if Path(source).parent == Path(target).parent:  # one change of one folder, on the disk entirely or not
                parent = self.find(Path(source).parent, Folder)
                names = parent.names()
                del names[Path(source).name]
                parent.changes.append((Path(target).name, node))
                parent.changes.append((Path(source).name, None))
            else:
                self.change(target, node)
                self.change(source, None)
            self.on_change()

    def rename(self, source, target):
        self.move("rename", source, target)

    def replace(self, source, target):
        self.move("replace", source, target)

    def unlink(self, path, *arguments, **options):
        self.real["unlink"](path, *arguments, **options)
        if not options and self.inside(path):
            self.change(path, None)

    def remove(self, tree, path, *arguments, **options):
        tree(path, *arguments, **options)
        if self.inside(path) and not os.path.lexists(path):
            self.change(path, None)

    def fsync(self, descriptor):
        self.real["fsync"](descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not self.inside(path):
            return
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            folder = self.find(path, Folder)
            folder.synced, folder.changes = folder.names(), []
        else:
            self.find(path).synced = path.read_bytes()
        self.on_change()

    def clone(self, target, chance: random.Random):
        """Write what the disk may hold if the power fails now."""
        Path(target).mkdir()
        self._write(self.top, Path(target), chance)
        return Path(target)

    def _write(self, folder, target, chance):
        for name, node in folder.names(chance.randint(0, len(folder.changes))).items():
            if isinstance(node, Folder):
                self.real["mkdir"](target / name)
                self._write(node, target / name, chance)
            else:
                (target / name).write_bytes(node.synced)
