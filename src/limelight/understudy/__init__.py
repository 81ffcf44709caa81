"""The offline model: an OpenAI-compatible endpoint that plays scripts, or improvises."""
