"""Our own set: what a memory holds, and what is asked about it in other words. English, Chinese, Russian; stories and chats.

In each episode the same people come up again and again, so that a name alone finds nothing. A line is (whose, text, question or "").
"""

from __future__ import annotations

Line = tuple[str, str, str]

ENGLISH: dict[str, list[Line]] = {
    "the lighthouse": [
        ("", "Maren took over the lighthouse when her father drowned.", "Why did Maren become keeper of the light?"),
        (
            "",
            "Maren counts the steps of the stair aloud every evening: a hundred and twelve.",
            "How high does Maren have to climb each night?",
        ),
        ("", "Jonas repaired the fog horn with a spoon and a piece of wire.", "What did Jonas use to mend the fog signal?"),
        ("", "Jonas has not spoken to his brother Edvin since the boat was sold.", "What came between Jonas and Edvin?"),
        ("", "Edvin hides a bottle of gin behind the lamp oil.", "Where does Edvin keep his liquor?"),
        ("", "Maren and Jonas ate fish soup while the storm went by.", ""),
        ("", "Edvin came up to the lighthouse with the post and stayed for tea.", ""),
        ("", "Jonas looked at the sea for a long time and said nothing to Maren.", ""),
    ],
    "the inquest": [
        ("", "Inspector Hale found a glove of red silk under the piano.", "What clue lay beneath the piano?"),
        ("", "Lady Ashby swore that she had gone to bed at ten.", "What alibi does Lady Ashby give?"),
        ("", "The butler, Crane, limps since the war and cannot climb the ivy.", "Why can't Crane have come in through the window?"),
        ("", "Doctor Finch says that the colonel was poisoned with foxglove.", "How was the colonel killed, according to Finch?"),
        ("", "Crane inherits nothing; all goes to the colonel's nephew Rupert.", "Who profits from the colonel's death?"),
        ("", "Inspector Hale drank his coffee in the kitchen with Crane.", ""),
        ("", "Lady Ashby asked Doctor Finch to stay for supper.", ""),
        ("", "Rupert walked with Inspector Hale to the gate and back.", ""),
    ],
    "chat: plans": [
        ("Tess", "I start at the bakery on Monday, four in the morning!", "When does Tess begin her new job?"),
        ("Omar", "My sister is getting married in Lisbon in September.", "Whose wedding is Omar going to?"),
        ("Tess", "I'm allergic to cats, so your place is out.", "Why can't Tess visit Omar at home?"),
        ("Omar", "I sold the motorbike and bought a cello.", "Which instrument does Omar own?"),
        ("Tess", "Ha, good night Omar, sleep well.", ""),
        ("Omar", "Good morning Tess! How are you today?", ""),
        ("Tess", "Fine, Omar, and you?", ""),
    ],
}

CHINESE: dict[str, list[Line]] = {
    "灯塔": [
        ("", "林霜的父亲淹死以后，她接管了灯塔。", "林霜为什么成了守灯塔的人？"),
        ("", "林霜每天傍晚都大声数楼梯，一共一百一十二级。", "林霜每晚要爬多高的台阶？"),
        ("", "周远用勺子和一截铁丝修好了雾号。", "周远拿什么东西修理雾号？"),
        ("", "自从船被卖掉，周远再没跟弟弟周平说过话。", "周远和周平为什么闹翻了？"),
        ("", "周平把一瓶白酒藏在灯油后面。", "周平的酒放在哪里？"),
        ("", "暴风雨过去的时候，林霜和周远在喝鱼汤。", ""),
        ("", "周平上灯塔送信，留下来喝茶。", ""),
        ("", "周远望着大海，很久没有对林霜说话。", ""),
    ],
    "命案": [
        ("", "何探长在钢琴底下发现一只红绸手套。", "钢琴下面找到了什么线索？"),
        ("", "沈夫人发誓说自己十点就睡了。", "沈夫人有什么不在场证明？"),
        ("", "管家老陈打仗以后腿就瘸了，爬不上墙。", "老陈为什么不可能翻窗进来？"),
        ("", "方医生说上校是被毒死的。", "方医生认为上校的死因是什么？"),
        ("", "老陈什么也继承不到，财产都归上校的侄子。", "上校死了谁能得到遗产？"),
        ("", "何探长和老陈在厨房里喝咖啡。", ""),
        ("", "沈夫人请方医生留下吃晚饭。", ""),
        ("", "何探长陪着侄子走到门口又走回来。", ""),
    ],
    "聊天": [
        ("小雨", "我星期一开始去面包店上班，早上四点！", "小雨什么时候开始新工作？"),
        ("阿明", "我妹妹九月在里斯本结婚。", "阿明要去参加谁的婚礼？"),
        ("小雨", "我对猫过敏，所以不能去你家。", "小雨为什么不能去阿明家里做客？"),
        ("阿明", "我把摩托车卖了，买了一把大提琴。", "阿明有什么乐器？"),
        ("小雨", "哈哈，晚安阿明，睡个好觉。", ""),
        ("阿明", "早上好小雨！今天怎么样？", ""),
        ("小雨", "挺好的，阿明，你呢？", ""),
    ],
}

RUSSIAN: dict[str, list[Line]] = {
    "маяк": [
        ("", "Марина стала смотрительницей маяка, когда утонул её отец.", "Почему маяк достался Марине?"),
        ("", "Каждый вечер Марина вслух считает ступени лестницы: сто двенадцать.", "Сколько ступенек приходится одолевать Марине?"),
        ("", "Игнат починил туманный горн ложкой и куском проволоки.", "Чем Игнат чинил горн?"),
        ("", "Игнат не разговаривает с братом Ефимом с тех пор, как продали лодку.", "Из-за чего Игнат поссорился с Ефимом?"),
        ("", "Ефим прячет бутылку водки за лампадным маслом.", "Где у Ефима спрятана выпивка?"),
        ("", "Пока шла буря, Марина с Игнатом ели уху.", ""),
        ("", "Ефим принёс на маяк почту и остался пить чай.", ""),
        ("", "Игнат долго смотрел на море и ничего не сказал Марине.", ""),
    ],
    "следствие": [
        ("", "Следователь Гальцев нашёл под роялем перчатку из красного шёлка.", "Какая улика лежала под роялем?"),
        ("", "Княгиня Ашанина клялась, что легла спать в десять.", "Какое алиби у Ашаниной?"),
        ("", "Лакей Кузьма хромает с войны и не мог влезть по плющу.", "Почему Кузьме не под силу забраться в окно?"),
        ("", "Доктор Финк говорит, что полковника отравили наперстянкой.", "Отчего, по мнению Финка, умер полковник?"),
        ("", "Кузьма ничего не наследует, всё достанется племяннику полковника.", "Кому выгодна смерть полковника?"),
        ("", "Гальцев пил кофе на кухне с Кузьмой.", ""),
        ("", "Ашанина попросила доктора Финка остаться на ужин.", ""),
        ("", "Племянник проводил Гальцева до ворот и обратно.", ""),
    ],
    "чат": [
        ("Тася", "С понедельника выхожу в пекарню, к четырём утра!", "Когда у Таси первый рабочий день?"),
        ("Олег", "Моя сестра выходит замуж в Лиссабоне в сентябре.", "На чью свадьбу поедет Олег?"),
        ("Тася", "У меня аллергия на кошек, так что к тебе нельзя.", "Почему Тася не может прийти к Олегу в гости?"),
        ("Олег", "Я продал мотоцикл и купил виолончель.", "Какой музыкальный инструмент есть у Олега?"),
        ("Тася", "Ха, спокойной ночи, Олег, спи крепко.", ""),
        ("Олег", "Доброе утро, Тася! Как ты?", ""),
        ("Тася", "Хорошо, Олег, а ты?", ""),
    ],
}

LANGUAGES = {"en": ENGLISH, "zh": CHINESE, "ru": RUSSIAN}

MEANING = {
    # Search term → what it means: a dictionary in place of an embedder, for the words above. Pairs that a reader would connect.
    "keeper": "guard", "took": "guard", "step": "stair", "climb": "stair", "high": "stair", "mend": "repair", "signal": "horn",
    "spoken": "quarrel", "between": "quarrel", "liquor": "gin", "clue": "glove", "beneath": "under", "alibi": "bed", "window": "ivi",
    "kill": "poison", "accord": "say", "profit": "inherit", "death": "inherit", "begin": "start", "job": "bakeri", "wed": "marri",
    "visit": "place", "home": "place", "instrument": "cello", "own": "bought",
    "守灯": "接管", "成了": "接管", "台阶": "楼梯", "要爬": "楼梯", "修理": "修好", "东西": "勺子", "闹翻": "说话", "的酒": "白酒",
    "放在": "藏在", "线索": "手套", "下面": "底下", "证明": "睡了", "在场": "十点", "翻窗": "爬不", "死因": "毒死", "认为": "生说",
    "遗产": "继承", "得到": "财产", "新工": "上班", "工作": "上班", "婚礼": "结婚", "做客": "你家", "家里": "你家", "乐器": "提琴",
    "дост": "стал", "ступенек": "ступен", "одолева": "лестниц", "поссор": "разговарива", "выпивк": "водк", "улик": "перчатк", "леж": "наш",
    "алиб": "спат", "забра": "влезт", "окн": "плющ", "умер": "отрав", "мнен": "говор", "выгодн": "достанет", "смерт": "наслед",
    "рабоч": "пекарн", "перв": "понедельник", "свадьб": "замуж", "гост": "нельз", "прийт": "нельз", "инструмент": "виолончел",
    "музыкальн": "виолончел",
}  # fmt: skip
