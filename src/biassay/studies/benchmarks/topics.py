"""What a category of a benchmark is about."""

from __future__ import annotations

__all__ = ["topic_of"]

_TOPICS = {
    "Age": "age",
    "Disability_status": "disability",
    "Gender_identity": "gender",
    "Nationality": "nationality",
    "Physical_appearance": "appearance",
    "Race_ethnicity": "race",
    "Race_x_SES": "intersection",
    "Race_x_gender": "intersection",
    "Religion": "religion",
    "SES": "class",
    "Sexual_orientation": "sexuality",
    "race-color": "race",
    "socioeconomic": "class",
    "sexual-orientation": "sexuality",
    "physical-appearance": "appearance",
}


def topic_of(category: str) -> str:
    """Its topic, named as those of association tests; a category that has no other is one itself."""
    plain = category.removesuffix(" (names)")
    return _TOPICS.get(plain, plain)
