"""One reading in three languages, as the slots of the reader's prompts show it. Every text ends as a person would end it."""

from __future__ import annotations

from typing import Any

LANGUAGES = ("en", "zh", "ru")

_EN: dict[str, Any] = {
    "language_name": "English",
    "task": "Who keeps the vaults, and what is kept in them?",
    "documents": "§§§ town/vaults.md\nMira keeps vault Amber. Its code is 4037.\n§§§ end",
    "context": "Mira came to the town with nine keys.",
    "known": "- Mira has nine keys.\n- Vault Birch is empty.",
    "digests": "Mira opens vault Amber.\n\nThe mayor asks for the code.",
    "parts": "## 1: town/vaults.md\nMira keeps the vaults.\n[1] The code of vault Amber is 4037.\n\n## 2\n[2] Vault Birch is empty.",
    "question": "Where did she find it?",
    "earlier": "? Who keeps the vaults?\n= Mira keeps them.",
    "facts": "[1] The code of vault Amber is 4037. («its code is 4037»)\n[2] Vault Birch is empty.",
    "titles": "- town/vaults.md\n- town/mayor.md",
    "people": "- Mira: keeps the vaults; trusts the mayor\n- The mayor: wants the code",
    "places": "- Vault Amber: below the town hall",
    "story": "Mira came to the town. The mayor asked for the code.",
    "cast": "- Mira: keeps the vaults.\n- The mayor: wants the code.",
    "latest": "Mira hides the code.\n- The code is under the ninth key.",
    "ending": "Mira closed the door. Nobody had seen her.",
    "passages": "§§§ 1\nMira closed the door.\n§§§ end\n\n§§§ 2\nNobody had seen her.\n§§§ end",
}

_ZH: dict[str, Any] = {
    "language_name": "中文",
    "task": "谁看守金库，里面存着什么？",
    "documents": "§§§ 镇志之一\n米拉看守琥珀金库。它的密码是 4037。\n§§§ end",
    "context": "米拉带着九把钥匙来到镇上。",
    "known": "- 米拉有九把钥匙。\n- 白桦金库是空的。",
    "digests": "米拉打开了琥珀金库。\n\n镇长来要密码。",
    "parts": "## 1：镇志之一\n米拉看守金库。\n[1] 琥珀金库的密码是 4037。\n\n## 2\n[2] 白桦金库是空的。",
    "question": "她在哪里找到的？",
    "earlier": "? 谁看守金库？\n= 米拉看守金库。",
    "facts": "[1] 琥珀金库的密码是 4037。（«密码是 4037»）\n[2] 白桦金库是空的。",
    "titles": "- 镇志之一\n- 镇志之二",
    "people": "- 米拉：看守金库；信任镇长\n- 镇长：想要密码",
    "places": "- 琥珀金库：在镇公所底下",
    "story": "米拉来到镇上。镇长来要密码。",
    "cast": "- 米拉：看守金库。\n- 镇长：想要密码。",
    "latest": "米拉藏起了密码。\n- 密码在第九把钥匙下面。",
    "ending": "米拉关上门。没有人看见她。",
    "passages": "§§§ 1\n米拉关上门。\n§§§ end\n\n§§§ 2\n没有人看见她。\n§§§ end",
}

_RU: dict[str, Any] = {
    "language_name": "русском языке",
    "task": "Кто хранит хранилища и что в них лежит?",
    "documents": "§§§ город/хранилища\nМира хранит хранилище Янтарь. Его код — 4037.\n§§§ end",
    "context": "Мира пришла в город с девятью ключами.",
    "known": "- У Миры девять ключей.\n- Хранилище Берёза пусто.",
    "digests": "Мира открывает хранилище Янтарь.\n\nМэр просит код.",
    "parts": "## 1: город/хранилища\nМира хранит хранилища.\n[1] Код хранилища Янтарь — 4037.\n\n## 2\n[2] Хранилище Берёза пусто.",
    "question": "Где она это нашла?",
    "earlier": "? Кто хранит хранилища?\n= Их хранит Мира.",
    "facts": "[1] Код хранилища Янтарь — 4037. («его код — 4037»)\n[2] Хранилище Берёза пусто.",
    "titles": "- город/хранилища\n- город/мэр",
    "people": "- Мира: хранит хранилища; верит мэру\n- Мэр: хочет получить код",
    "places": "- Хранилище Янтарь: под ратушей",
    "story": "Мира пришла в город. Мэр попросил код.",
    "cast": "- Мира: хранит хранилища.\n- Мэр: хочет получить код.",
    "latest": "Мира прячет код.\n- Код лежит под девятым ключом.",
    "ending": "Мира закрыла дверь. Никто её не видел.",
    "passages": "§§§ 1\nМира закрыла дверь.\n§§§ end\n\n§§§ 2\nНикто её не видел.\n§§§ end",
}

STATES = {"en": _EN, "zh": _ZH, "ru": _RU}

SHORT = {"en": "Mira has keys.", "zh": "米拉有九把钥匙。", "ru": "У Миры ключи."}
"""A sentence as short as a claim or a summary may be."""

_NUMBERS: dict[str, Any] = {
    "claims": 6, "words": 200, "context_words": 150, "statements": 6, "fence": "§§§", "last": True, "code": False,
}  # fmt: skip


def state_of(language: str) -> dict[str, Any]:
    """Every slot, filled."""
    return {**_NUMBERS, **STATES[language]}
