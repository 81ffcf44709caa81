"""The choice of a model: from settings and environment to a model, or an error that names the fix."""

from pathlib import Path

import pytest

from limelight.builtin.model_choice import NO_KEY, OPENAI, ModelChoice, choose_model, resolve_address
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
def test_choice_follows_from_settings_and_environment(
    model: str, base_url: str, environ: dict[str, str], choice: ModelChoice
) -> None:
    assert choose_model(model, base_url, environ) == choice
    assert choice.is_understudy == (choice.model == "understudy")


@pytest.mark.parametrize(
    ("model", "base_url", "environ", "message"),
    [
        ("mine", "", {}, "'mine' at https://api.openai.com/v1 needs a key: set OPENAI_API_KEY"),
        ("", "", NAMED, "'env-model' at https://api.openai.com/v1 needs a key: set OPENAI_API_KEY"),
        ("mine", "https://api.openai.com/v2", {}, "needs a key"),
        ("", "http://host/v1", KEY, "set model too, or LIMELIGHT_MODEL"),
    ],
)
def test_insufficient_settings_are_an_error(model: str, base_url: str, environ: dict[str, str], message: str) -> None:
    with pytest.raises(SetupError) as caught:
        choose_model(model, base_url, environ)
    assert message in caught.value.detail


class FakeResources:
    """Counts the starts of the understudy."""

    data = Path()
    starts = 0

    async def understudy(self) -> tuple[str, str]:
        self.starts += 1
        return "http://127.0.0.1:5/v1", "sesame"


async def test_understudy_is_started_only_if_it_is_the_model() -> None:
    resources = FakeResources()
    real = ModelChoice("mine", "http://host/v1", "k")
    assert await resolve_address(real, resources) is real
    assert resources.starts == 0
    assert await resolve_address(ModelChoice(), resources) == ModelChoice(
        "understudy", "http://127.0.0.1:5/v1", "sesame"
    )
