"""Large sets of a state: the names of their segments."""

from __future__ import annotations

import os

import numpy as np

from windloom.state.cells import Cells
from windloom.state.held import IN_PROCESS


def test_a_forked_process_gives_its_segments_names_of_their_own() -> None:
    cells = Cells([], np.zeros(2, np.int64), np.empty(0, np.int64), ())
    IN_PROCESS.write(cells)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, IN_PROCESS.write(cells)[0].encode())
        os._exit(0)
    os.waitpid(child, 0)
    own, other = IN_PROCESS.write(cells)[0], os.read(reading, 100).decode()
    os.close(reading)
    os.close(writing)
    assert own.partition("-")[0] != other.partition("-")[0]
