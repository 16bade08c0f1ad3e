"""Measure what a step on the Step page costs the server: `python -m tests.redraw [ROUNDS]`.

A full-detail trace is put on screen and the reader steps back and forth through its last rounds.
Times are of the page's own redraw (AppTest: script, fragments and the protobufs of every element).
"""

import statistics
import sys
import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

from specviz.traces.timeline import Cursor
from specviz.ui.run import Run
from tests.views.stories import long_story

APP = Path(__file__).parent.parent / "app.py"
STEPS = 20


def measure(rounds: int) -> list[float]:
    """Return seconds of redraws, the first ones left out."""
    trace = long_story(rounds).trace()
    page = AppTest.from_file(str(APP), default_timeout=60).run()
    state = page.session_state["specviz"]
    state.show(Run.of_trace(trace, "opened"))
    page.run()
    seconds = []
    for step in range(STEPS):
        state.move(Cursor(rounds - 2 - step % 5, step % 3))
        began = time.perf_counter()
        page.run()
        seconds.append(time.perf_counter() - began)
    assert not page.exception
    return seconds[5:]


def main() -> None:
    """Print median and spread."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    times = [1000 * s for s in measure(rounds)]
    low, middle, high = min(times), statistics.median(times), max(times)
    sys.stdout.write(
        f"redraw with {rounds} rounds: median {middle:.0f} ms, {low:.0f} to {high:.0f} ms\n"
    )


if __name__ == "__main__":
    main()
