"""One story in three languages, as the slots of the writer's prompts show it. Made for tests; every text ends as a person would end it."""

from __future__ import annotations

from typing import Any

LANGUAGES = ("en", "zh", "ru")

_EN: dict[str, Any] = {
    "language_name": "English",
    "unit": "words",
    "words": "1000 words",
    "plan_sentences": "3 to 5",
    "title": "The Salt Clock",
    "genre": "mystery",
    "premise": "A clockmaker inherits a clock that runs only at low tide.",
    "setting": "Varen, a fishing town on stilts, in a winter without ships. What the tide uncovers belongs to whoever finds it.",
    "cast": "- Anna Reed: a clockmaker who wants to leave.\n- Old Jory: the harbour master, who hides a debt.",
    "style": "Short sentences, dry humour.",
    "short_term": "- Anna Reed has the key of the clock.\n- Old Jory does not know that she has it.",
    "known": "- Anna Reed has the key of the clock.\n- Old Jory does not know that she has it.",
    "last": "The clock struck once. Anna put the key back under her collar.",
    "label": "Chapter 2",
    "memories": ["Jory sold the ferry to a stranger.", "Anna found salt in the clockwork."],
    "note": "Nobody in Varen can swim.",
    "plan": "Anna opens the clock at low tide. Inside she finds a name that is not her uncle's.",
    "plans": ["Anna opens the clock at low tide.", "Jory asks Anna for the key.", "The water comes back too early."],
    "reader": "You like quiet stories.",
    "ending": "Anna leaves the clock to the sea.",
    "beat": "Anna opens the clock at low tide.",
    "so_far": "The mud shone. Anna knelt before the clock.",
    "notes": "- Anna Reed has the key of the clock.",
    "length": "60 words",
    "number": 2,
    "who": "Old Jory",
    "numbered": "1. Anna Reed has the key of the clock.\n2. Old Jory sold the ferry.",
    "passage": "Anna turned the key. The clock struck once, and the water stood still.",
    "changed": ["Anna turned the key and nothing happened.", "Jory counted the boats twice."],
    "direction": "More menace, less weather.",
    "selection": "Anna put the key away.",
    "outline_before": "- Low Water: Anna inherits the clock.",
    "outline_after": "- High Water: The clock stops.",
    "text_before": "The clock struck once. ",
    "text_after": " Nobody had seen her.",
    "given": "The Salt Clock",
    "names": ["Anna Reed", "Old Jory"],
    "free_person": "first plural",
    "free_tense": "future",
}

_ZH: dict[str, Any] = {
    "language_name": "中文",
    "unit": "字",
    "words": "1000 字",
    "plan_sentences": "3–5",
    "title": "盐钟",
    "genre": "悬疑",
    "premise": "一个钟表匠继承了一座只在退潮时走动的钟。",
    "setting": "瓦伦，一座立在木桩上的渔镇，正值没有船来的冬天。潮水露出的东西，谁捡到归谁。",
    "cast": "- 安娜：想离开此地的钟表匠。\n- 老约里：隐瞒着一笔债的港务长。",
    "style": "短句，冷幽默。",
    "short_term": "- 安娜拿着钟的钥匙。\n- 老约里不知道钥匙在她手里。",
    "known": "- 安娜拿着钟的钥匙。\n- 老约里不知道钥匙在她手里。",
    "last": "钟响了一下。安娜把钥匙塞回衣领里。",
    "label": "第二章",
    "memories": ["老约里把渡船卖给了一个外乡人。", "安娜在机芯里发现了盐。"],
    "note": "瓦伦没有人会游泳。",
    "plan": "退潮时安娜打开了钟。她在里面看到一个名字，却不是她叔叔的。",
    "plans": ["退潮时安娜打开钟。", "老约里向安娜要钥匙。", "潮水提前涨了回来。"],
    "reader": "你喜欢安静的故事。",
    "ending": "安娜把钟留给了大海。",
    "beat": "退潮时安娜打开了钟。",
    "so_far": "泥滩发亮。安娜跪在钟前。",
    "notes": "- 安娜拿着钟的钥匙。",
    "length": "100 字",
    "number": 2,
    "who": "老约里",
    "numbered": "1. 安娜拿着钟的钥匙。\n2. 老约里卖掉了渡船。",
    "passage": "安娜转动钥匙。钟响了一下，水面静止了。",
    "changed": ["安娜转动钥匙，什么也没有发生。", "老约里把船数了两遍。"],
    "direction": "多一点威胁，少写天气。",
    "selection": "安娜收起了钥匙。",
    "outline_before": "- 退潮：安娜继承了钟。",
    "outline_after": "- 涨潮：钟停了。",
    "text_before": "钟响了一下。",
    "text_after": "没有人看见她。",
    "given": "盐钟",
    "names": ["安娜", "老约里"],
    "free_person": "第一人称复数",
    "free_tense": "",
}

_RU: dict[str, Any] = {
    "language_name": "русском языке",
    "unit": "слов",
    "words": "1000 слов",
    "plan_sentences": "3–5",
    "title": "Соляные часы",
    "genre": "детектив",
    "premise": "Часовщица получает в наследство часы, которые идут только в отлив.",
    "setting": "Варен, рыбацкий город на сваях, зима без кораблей. Что открыл отлив, принадлежит тому, кто нашёл.",
    "cast": "- Анна Рид: часовщица, хочет уехать.\n- Старый Йори: начальник порта, скрывает долг.",
    "style": "Короткие фразы, сухой юмор.",
    "short_term": "- У Анны Рид ключ от часов.\n- Старый Йори не знает, что ключ у неё.",
    "known": "- У Анны Рид ключ от часов.\n- Старый Йори не знает, что ключ у неё.",
    "last": "Часы пробили один раз. Анна спрятала ключ за ворот.",
    "label": "Глава 2",
    "memories": ["Йори продал паром чужаку.", "Анна нашла в механизме соль."],
    "note": "В Варене никто не умеет плавать.",
    "plan": "В отлив Анна открывает часы. Внутри она находит имя, и это не имя её дяди.",
    "plans": ["В отлив Анна открывает часы.", "Йори просит у Анны ключ.", "Вода возвращается слишком рано."],
    "reader": "Ты любишь тихие истории.",
    "ending": "Анна оставляет часы морю.",
    "beat": "В отлив Анна открывает часы.",
    "so_far": "Ил блестел. Анна опустилась перед часами на колени.",
    "notes": "- Ключ от часов у Анны Рид.",
    "length": "60 слов",
    "number": 2,
    "who": "старый Йори",
    "numbered": "1. У Анны Рид ключ от часов.\n2. Старый Йори продал паром.",
    "passage": "Анна повернула ключ. Часы пробили один раз, и вода замерла.",
    "changed": ["Анна повернула ключ, и ничего не случилось.", "Йори дважды пересчитал лодки."],
    "direction": "Больше угрозы, меньше погоды.",
    "selection": "Анна убрала ключ.",
    "outline_before": "- Малая вода: Анна получает часы.",
    "outline_after": "- Большая вода: Часы встают.",
    "text_before": "Часы пробили один раз. ",
    "text_after": " Никто её не видел.",
    "given": "Соляные часы",
    "names": ["Анна Рид", "Старый Йори"],
    "free_person": "первое множественное",
    "free_tense": "будущее",
}

STATES = {"en": _EN, "zh": _ZH, "ru": _RU}

SHORT = {"en": "Anna opens the door.", "zh": "安娜推开灯塔的门。", "ru": "Анна открывает дверь."}
"""A sentence as short as a plan or a note may be."""

_NUMBERS: dict[str, Any] = {"low": 200, "high": 400, "most": 2, "total": 12, "numbers": "4, 5, 6"}
_CHOICES: dict[str, Any] = {"play": False, "place": "middle", "how": "rewrite", "person": "third", "tense": "past"}


def state_of(language: str, prompt: str) -> dict[str, Any]:
    """Every slot of a prompt, filled."""
    state = {**_NUMBERS, **_CHOICES, **STATES[language]}
    kind = "outline" if prompt == "outline" else "text"
    return {**state, "before": state[f"{kind}_before"], "after": state[f"{kind}_after"]}
