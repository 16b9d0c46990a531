"""Prose that we wrote for these tests: one passage told in four languages, and what legally repeats itself."""

from __future__ import annotations

# ruff: noqa: E501

EN = """The lighthouse had been dark for eleven years when Mira came back to the island. She climbed the rocks with her father's key in her coat pocket and the letter folded twice against her chest. Nobody had met her at the harbour. The ferryman had looked at her name on the ticket, then at her face, and had said nothing more until they landed.

"You won't find anything up there," he told her at last. "They took the lamp away, and the books, and the clock."

"I'm not looking for a lamp," she said.

The door was swollen with salt, and she had to lean on it with her whole weight before it gave. Inside, the air smelled of wet stone and old oil. A staircase wound upward into the dark. On the third step somebody had left a pair of small brown shoes, side by side, as neatly as if a child had just taken them off before going to bed. Mira knelt down. The laces were still damp.

She listened. Above her, very softly, something began to turn, and through the gap under the next landing there came a thin line of light."""
ZH = """米拉回到岛上的时候，灯塔已经熄灭了十一年。她攀上礁石，大衣口袋里装着父亲的钥匙，那封折了两折的信贴在胸口。港口没有一个人来接她。摆渡的人看了看船票上的名字，又看了看她的脸，直到靠岸都没有再说一句话。

“上面什么也找不到了。”他终于对她说，“灯被他们搬走了，书也搬走了，连钟都没留下。”

“我不是来找灯的。”她说。

门被盐气泡得发胀，她用整个身子顶上去，门才松动。里面的空气带着湿石头和旧机油的味道。楼梯盘旋着伸进黑暗。第三级台阶上，有人留下了一双棕色的小鞋，并排摆着，整整齐齐，好像一个孩子刚刚脱下它们上床睡觉。米拉跪了下来。鞋带还是潮的。

她侧耳细听。在她头顶，有什么东西极轻极轻地转动起来，从上一层平台下面的缝隙里，透出了一线微光。"""
RU = """Маяк не горел уже одиннадцать лет, когда Мира вернулась на остров. Она поднималась по камням с отцовским ключом в кармане пальто, а сложенное вчетверо письмо прижимала к груди. В гавани её никто не встретил. Паромщик посмотрел на имя в билете, потом на её лицо и до самого берега больше не сказал ни слова.

— Ничего вы там не найдёте, — произнёс он наконец. — Лампу увезли, и книги, и часы.

— Я не лампу ищу, — сказала она.

Дверь разбухла от соли, и пришлось навалиться на неё всем телом, прежде чем она поддалась. Внутри пахло мокрым камнем и старым маслом. Лестница уходила винтом в темноту. На третьей ступеньке кто-то оставил пару маленьких коричневых ботинок, рядышком, так аккуратно, словно ребёнок только что снял их перед сном. Мира опустилась на колени. Шнурки были ещё сырые.

Она прислушалась. Наверху, совсем тихо, что-то начало вращаться, и из щели под следующей площадкой пробилась тонкая полоска света."""
JA = """ミラが島に戻ってきたとき、灯台はもう十一年も暗いままだった。父の鍵をコートのポケットに入れ、二つに折った手紙を胸に押し当てて、彼女は岩場を登っていった。港には誰も迎えに来ていなかった。渡し守は切符の名前を見て、それから彼女の顔を見たが、岸に着くまでそれ以上何も言わなかった。

「上には何も残っちゃいないよ」と彼はようやく言った。「ランプも本も時計も、みんな持っていかれた」

「ランプを探しに来たんじゃありません」と彼女は言った。

扉は塩で膨らんでいて、全身の重みをかけてようやく開いた。中の空気は濡れた石と古い油の匂いがした。階段は闇の中へ渦を巻いて伸びている。三段目に、誰かが小さな茶色の靴を一足、まるで子どもが寝る前に脱いだばかりのようにきちんと揃えて置いていた。ミラは膝をついた。靴紐はまだ湿っていた。

彼女は耳を澄ました。頭の上で、とても静かに何かが回り始め、次の踊り場の下の隙間から、細い光の筋が差してきた。"""


DIALOGUE = """"Are you sure?" asked Tom.

"No," said Mira. "No, no, no. I'm not sure of anything."

"Then stay."

"I can't stay."

"Then go."

"I can't go, either." She laughed. "Ha, ha, ha. Listen to me. I can't stay and I can't go."

"Never mind," he said. "Never mind, never mind, never mind. Tick-tock, tick-tock, tick-tock, said the clock. Do you hear it?"

"I hear it."

"Do you hear the sea?"

"I hear it."

"Do you hear the bell?"

"I don't hear it," she said. "There is no bell. There has been no bell for years."
"""

BALLAD = """The keeper climbed the winding stair,
    Burn, little lamp, burn bright,
With salt and silver in his hair,
    And bring the boats home tonight.

His daughter watched the harbour wall,
    Burn, little lamp, burn bright,
And heard the drowning sailors call,
    And bring the boats home tonight.

The wind came up, the oil ran low,
    Burn, little lamp, burn bright,
She burned her books, her bed, her bow,
    And bring the boats home tonight.

And when the morning lit the bay,
    Burn, little lamp, burn bright,
Eleven boats at anchor lay,
    And she had brought them home that night.
"""

CHANT_ZH = """孩子们拍着手唱：“灯塔亮，灯塔亮，船儿船儿快回港。灯塔亮，灯塔亮，爸爸爸爸快下网。”

米拉笑了。“哈哈哈哈哈哈，你们唱错了。”

“没错！没错！没错！”

“错了，错了。”她说，“你们听我唱：灯塔亮，灯塔亮，船儿船儿快回港。灯塔亮，灯塔亮，妈妈妈妈点灯光。”
"""

DIALOGUE_RU = """— Ты слышишь? — спросил Том.

— Нет, — сказала Мира. — Нет, нет, нет и нет.

— А теперь слышишь?

— Нет.

— А теперь?

— Теперь слышу. Тик-так, тик-так, тик-так. Это часы. Это всего лишь часы, Том. Они идут, идут, идут и никуда не приходят.

— Часы увезли одиннадцать лет назад, — сказал он.
"""

NEXT_EN = """By noon the fog had burned away and the whole village knew that a stranger had slept in the tower. Women came down to the harbour with baskets and
pretended to look for fish. The baker closed his shop an hour early. Only old Ansel, who had kept the light for thirty years before they put it out, stayed in his
garden and went on tying beans to their poles.

Mira found him there. He did not turn round, but his hands stopped.

"You have your father's step," he said. "Heavy on the left. He limped too, after the fall."

"He never told me that he fell."

"No," said Ansel. "He wouldn't." He tied one more knot, slowly, the way a man does who has decided to speak and wants to put it off a little longer. "Sit down. The
bench is dry. What did he write to you?"

She gave him the letter. He held it a long way off, then close, and his lips moved as he read. When he had finished he folded it along the old creases and laid it on
the bench between them, and for a while there was nothing but the bees."""

CODE = '''"""Tides of one harbour."""

import math


class Tide:
    """Height of the water over time."""

    def __init__(self, mean, swing):
        self.mean = mean
        self.swing = swing

    def height(self, hour):
        if hour < 0:
            raise ValueError("before the beginning")
        return self.mean + self.swing * math.cos(hour / 6.21 * math.pi)


@staticmethod
def table(tide, hours):
    return [
        tide.height(hour)
        for hour in range(hours)
    ]


def lowest(tide, hours):
    best = min(table(tide, hours))
    return best
'''

TEXTS = {"en": EN, "zh": ZH, "ru": RU, "ja": JA}
