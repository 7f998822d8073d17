"""training/recipes/demo.toml: the recipe recommended for the demo's events."""

from tests.architecture.repository import ROOT
from training.config import DataConfig
from training.data.sources import read_events
from training.inspection.profile import profile_events
from training.inspection.recipe_text import format_recipe
from training.inspection.recommendation import recommend_recipe

PAGE = "training/recipes/demo.toml"

DATA = DataConfig(predict="next_basket", ignored_actions=("cancel",))

HEADER = (
    "The shipped demo: which items go into a customer's next basket, repeats included. Data: "
    "Online Retail II (UCI, CC BY 4.0), demo/events.parquet; cancellations left out. Written by "
    "make docs: what kairos inspect recommends with --predict next_basket --ignore-action cancel."
)


def render() -> str:
    """The whole file."""
    profile = profile_events(read_events(ROOT / "demo" / "events.parquet"), data=DATA)
    return format_recipe(recommend_recipe(profile, DATA), HEADER)
