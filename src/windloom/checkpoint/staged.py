"""Storage for a start that may be refused: nothing is written until everything has been checked."""

from __future__ import annotations

from windloom.checkpoint.storage import BufferedFile, Names, Storage, UnfinishedFile


class StagedStorage:
    """Holds writes and deletions back until `release`, and reads as if they were done; afterwards it passes all on.

    A start finds out step by step whether it can go on, and a checkpoint that it leaves half made would refuse the next
    one. If `release` is never called, `unlock` leaves the storage as `lock` found it.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._held: dict[str, bytes | None] | None = {}  # by name, in order; None is a deletion

    def release(self) -> None:
        """Write and delete what was held back, in the same order."""
        held, self._held = self._held or {}, None
        for name, data in held.items():
            if data is None:
                self._storage.delete(name)
            else:
                self._storage.write(name, data)

    def read(self, name: str) -> bytes | None:
        return self._storage.read(name) if self._held is None or name not in self._held else self._held[name]

    def mapped(self, name: str) -> bytes | memoryview | None:
        return self._storage.mapped(name) if self._held is None or name not in self._held else self._held[name]

    def write(self, name: str, data: bytes) -> None:
        self._hold(name, data)

    def create(self, name: str) -> UnfinishedFile:
        return self._storage.create(name) if self._held is None else BufferedFile(self, name)

    def list(self, folder: str) -> Names:
        return sorted(self.sizes(folder)) if self._held else self._storage.list(folder)

    def sizes(self, folder: str) -> dict[str, int]:
        sizes = self._storage.sizes(folder)
        for name, data in (self._held or {}).items():
            above, _, file = name.rpartition("/")
            if above == folder and data is None:
                sizes.pop(file, None)
            elif above == folder and data is not None:
                sizes[file] = len(data)
        return sizes

    def free_bytes(self) -> int | None:
        return self._storage.free_bytes()

    def delete(self, name: str) -> None:
        self._hold(name, None)

    def lock(self, owner: str) -> None:
        self._storage.lock(owner)

    def unlock(self, *, without_trace: bool = False) -> None:
        self._storage.unlock(without_trace=without_trace or self._held is not None)

    def _hold(self, name: str, data: bytes | None) -> None:
        if self._held is not None:
            self._held.pop(name, None)  # the last one counts, where it stands
            self._held[name] = data
        elif data is None:
            self._storage.delete(name)
        else:
            self._storage.write(name, data)
