"""Playing goes through a run in measured time or in teaching time, and stops at its end."""

import pytest

from specviz.traces.timeline import Cursor, micro_steps
from specviz.ui.playback import SPEEDS, Playback, Speed, elapsed, seek
from tests.traces.samples import ROUNDS

END = Cursor.end(ROUNDS)


def test_measured_time_is_where_the_run_stood():
    total = ROUNDS[-1].began + ROUNDS[-1].timing.total
    assert seek(0.0, ROUNDS).rounds == 0
    assert seek(total / 2, ROUNDS).rounds == 2
    assert seek(total, ROUNDS) == END


@pytest.mark.parametrize("rounds", range(len(ROUNDS)))
def test_seeking_is_the_inverse_of_elapsed(rounds):
    for micro in range(len(micro_steps(ROUNDS[rounds]))):
        at = Cursor(rounds, micro)
        assert seek(elapsed(at, ROUNDS) + 1e-9, ROUNDS) == at


def test_teaching_time_takes_one_step_per_beat():
    play = Playback(Speed(beat=0.5), started=100.0, origin=0.0)
    at, beats = Cursor(), 0
    while at != END:
        at, beats = play.at(1e9, at, ROUNDS), beats + 1
    assert beats == sum(len(micro_steps(event)) for event in ROUNDS)


def test_slower_playing_never_goes_back():
    play = Playback(Speed(factor=0.05), started=10.0, origin=elapsed(Cursor(2), ROUNDS))
    assert play.at(10.0, Cursor(2), ROUNDS) == Cursor(2)
    assert play.at(9.0, Cursor(2), ROUNDS) == Cursor(2)
    assert play.at(1e6, Cursor(2), ROUNDS) == END


def test_an_empty_run_has_only_one_place():
    assert seek(3.0, ()) == Cursor()
    assert elapsed(Cursor(), ()) == 0.0


def test_every_speed_says_how_often_it_redraws():
    assert all(0.05 <= speed.interval <= 2 for speed in SPEEDS.values())
