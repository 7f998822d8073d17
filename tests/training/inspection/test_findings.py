"""Findings about actions whose names are hostile."""

from tests.training.inspection.event_tables import make_events
from training.inspection.profile import profile_events


def test_an_option_quotes_the_name_of_its_action() -> None:
    events = make_events([("u", "i", 0), ("u", "j", 1)], action=["buy", "\x1bundo; reboot"])
    (finding,) = (it for it in profile_events(events).findings if "undo" in it.title)
    assert finding.detail.endswith(r"--ignore-action '\x1bundo; reboot'")
    assert finding.detail.isprintable()
