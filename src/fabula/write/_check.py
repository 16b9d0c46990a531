"""Whether a model is fit for a language (SPEC M6): if not, refused with a clear message and not written badly."""

from __future__ import annotations

from fabula.errors import LanguageUnfit
from fabula.runs import ModelFacts


def check_language_fits(facts: ModelFacts, language: str) -> None:
    """Raises LanguageUnfit where the model is marked unfit for the language."""
    if facts.languages.get(language, facts.languages.get("*", "good")) == "unfit":
        fit = sorted(name for name, value in facts.languages.items() if value != "unfit" and name != "*")
        raise LanguageUnfit(
            f"The model {facts.name} is not fit to write in {language!r}" + (f"; it can write in {', '.join(fit)}." if fit else "."),
            "Choose another model with `fabula model use …` or --model, or insist with --anyway.",
            model=facts.name,
            language=language,
        )
