"""The understudy: an offline model, served as an OpenAI-compatible endpoint, that plays scripts or improvises."""
