"""Which model: a table, from settings and environment to a choice or to one line that names the fix."""

from pathlib import Path

import pytest

from limelight.builtin.model_choice import NO_KEY, OPENAI, ModelChoice, address_of, choose_model
from limelight.errors import SetupError

KEY = {"OPENAI_API_KEY": "sk-1"}
ELSEWHERE = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
NAMED = {"LIMELIGHT_MODEL": "env-model"}


@pytest.mark.parametrize(
    ("model", "base_url", "environ", "choice"),
    [
        ("", "", {}, ModelChoice()),
        ("", "", KEY, ModelChoice()),
        ("", "", {**KEY, **ELSEWHERE}, ModelChoice()),
        ("", "", {**KEY, **NAMED}, ModelChoice("env-model", OPENAI, "sk-1")),
        ("mine", "", KEY, ModelChoice("mine", OPENAI, "sk-1")),
        ("mine", "", {**KEY, **NAMED}, ModelChoice("mine", OPENAI, "sk-1")),
        ("mine", "", ELSEWHERE, ModelChoice("mine", "http://127.0.0.1:1/v1", NO_KEY)),
        ("mine", "http://host/v1", {**KEY, **ELSEWHERE}, ModelChoice("mine", "http://host/v1", "sk-1")),
        ("", "http://host/v1", NAMED, ModelChoice("env-model", "http://host/v1", NO_KEY)),
        ("", "", {"LIMELIGHT_MODEL": ""}, ModelChoice()),
    ],
)
def test_the_choice(model: str, base_url: str, environ: dict[str, str], choice: ModelChoice) -> None:
    assert choose_model(model, base_url, environ) == choice
    assert choice.is_understudy == (choice.model == "understudy")


@pytest.mark.parametrize(
    ("model", "base_url", "environ", "told"),
    [
        ("mine", "", {}, "'mine' at https://api.openai.com/v1 needs a key: set OPENAI_API_KEY"),
        ("", "", NAMED, "'env-model' at https://api.openai.com/v1 needs a key: set OPENAI_API_KEY"),
        ("mine", "https://api.openai.com/v2", {}, "needs a key"),
        ("", "http://host/v1", KEY, "set model too, or LIMELIGHT_MODEL"),
    ],
)
def test_what_is_not_enough(model: str, base_url: str, environ: dict[str, str], told: str) -> None:
    with pytest.raises(SetupError) as caught:
        choose_model(model, base_url, environ)
    assert told in caught.value.detail


class Home:
    data = Path()
    asked = 0

    async def understudy(self) -> tuple[str, str]:
        self.asked += 1
        return "http://127.0.0.1:5/v1", "sesame"


async def test_the_understudy_is_asked_for_only_if_it_plays() -> None:
    home = Home()
    real = ModelChoice("mine", "http://host/v1", "k")
    assert await address_of(real, home) is real
    assert home.asked == 0
    assert await address_of(ModelChoice(), home) == ModelChoice("understudy", "http://127.0.0.1:5/v1", "sesame")
