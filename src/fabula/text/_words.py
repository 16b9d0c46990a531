"""Lists of words that the rules of this folder go by. Our own, and meant to stay short."""

from __future__ import annotations


def _listed(block: str) -> frozenset[str]:
    return frozenset(block.split())


NEVER_LAST = _listed("""
    mr mrs ms mx dr prof rev hon gen col maj capt cpt lt sgt cmdr st mt ft messrs mme mlle sr sra srta vs viz cf eg ie approx esp
    fig figs vol vols pp eds nos dept m hr frl bzw z.b d.h u.a ca bspw e.g i.e n.b
    им ул пр-т просп пер наб стр см ср напр проф акад доц канд инж св тов гр гр-н г-н г-жа г-жи мл ст рис табл гл разд т.е т.к т.н
    т.о тыс млн млрд руб коп кв обл р-н пос дер оз
""")  # fmt: skip
"""Abbreviations after which a sentence goes on, lower case, inner spaces and the last full stop left out."""

MAYBE_LAST = _listed("""
    etc jr inc ltd co corp a.m p.m u.s u.k u.s.a ph.d b.c a.d no p dec jan feb aug sept oct nov
    г гг в вв др пр т.д т.п т.ч н.э р л м с д кг км см мм ч мин сек
""")  # fmt: skip
"""Abbreviations that also end sentences: then the next sentence starts with one of `STARTERS`, or follows a new line."""

STARTERS = _listed("""
    the a an he she it they we you i his her its their my our this that these those there then but and so when while after before
    at in on as if no now only what who how why yes once for from with not nobody everyone
    он она оно они мы вы я ты это этот эта эти тот та те там тут тогда потом но и а когда если после перед на в во с со к по за из
    от у же теперь только что кто как где почему никто все всё его её ее их мой наш здесь сейчас однако
""")  # fmt: skip
"""Words that often start a sentence and seldom stand with a capital inside one."""

STOP = _listed("""
    a an the and or but if of at by for with about to from in on into onto is are was were be been being am do does did done has
    have had having i you he she it we they me him her us them my mine your yours his hers its our ours their theirs this that
    these those what which who whom whose when where why how as so not no nor can could will would shall should may might must
    there here than then too very just also s t d ll m re ve
    и в во на с со к ко о об обо у от ото до из изо за по под над при про для без через между а но да или либо же ли бы б не ни
    что чтобы как так то это этот эта эти этого этой этих этом этому тот та те того той тех том тому он она оно они его ее их ему
    ей им него нее них ней ним нем мы вы ты я меня мне мной тебя тебе вас вам нас нам нами вами мой моя мое мои твой твоя твое
    твои наш наша наше наши ваш ваша ваше ваши свой своя свое свои был была было были быть есть будет когда где куда кто чем чего
    кого кому если уже еще там тут здесь тогда потом очень только лишь вот ведь даже который которая которое которые
""")  # fmt: skip
"""Stop words of search, English and Russian (ё as е)."""

STOP_PAIRS = _listed("""
    我们 你们 他们 她们 它们 这个 那个 一个 这些 那些 什么 怎么 这样 那样 没有 不是 就是 还是 也是 都是 因为 所以 但是 可是 如果
    虽然 然后 而且 或者 已经 自己 的时 时候 です ます した した して いる ない ある この その
""")  # fmt: skip
"""Pairs of characters that search leaves out, Chinese and Japanese."""
