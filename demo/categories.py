"""Derives the categories of the demo's articles from the words of their titles.

    python demo/categories.py

Replaces the column `categories` of `items.parquet`, beside this file. The source has titles only.
"""

import re
from pathlib import Path

import polars as pl

ITEMS = Path(__file__).with_name("items.parquet")
MAX_CATEGORIES = 2
"""Most categories of one article."""

RULES = {
    "Christmas": """
        christmas, xmas, santa, reindeer, snowflake, snowmen, advent, nativity, bauble, noel,
        tinsel, mistletoe, sleigh, stocking, icicle, robin
    """,
    "Easter": "easter, bunny, bunnies, rabbit, chick, hen",
    "Party": """
        party, bunting, birthday, balloon, garland, napkin, picnic, doily, doilies, doiley, straw,
        cocktail, cocktail parasol, paper cup, paper plate, paper chain, paper lantern, cake candle,
        paper bell, paper ball, popcorn holder, rosette, pennant
    """,
    "Bags": """
        bag, lunch bag, shopper, purse, wallet, handbag, tote, rucksack, luggage, backpack, washbag,
        card holder, cardholder, passport cover
    """,
    "Jewellery and accessories": """
        jewellery, jewellery box, trinket, trinket box, trinket pot, necklace, necklac, earring,
        bracelet, brooch, ring, charm, bead, pendant, bangle, hair, hairband, hairslide, hairclip,
        umbrella, parasol, scarf, glove, slipper, sock, sunglasses, choker, tiara, lariat, poncho,
        hand warmer, key ring, keyring, fob, compact mirror, lip gloss, badge
    """,
    "Clocks": "clock, alarm clock, wall clock",
    "Signs and letters": """
        sign, doorsign, word, building block word, alphabet, letter, plaque, chalkboard, blackboard,
        black board, billboard, wall art, slate, poster
    """,
    "Frames and mirrors": """
        frame, photo, photoframe, photo frame, picture frame, photo album, picture, mirror, canvas,
        cornice
    """,
    "Candles and lights": """
        candle, candlestick, candleholder, candle holder, candle stick, candle plate, candlepot,
        chocolatecandle, t light, t light holder, tea light, tealight, tlight, light, light holder,
        night light, lantern, lamp, lampshade, chandelier, candelabra, incense, scented, oil burner,
        led, torch, match, matches
    """,
    "Tea and coffee": """
        tea, tea set, tea cosy, teapot, teacup, cup, saucer, mug, teatime, coffee, coaster, sugar
        bowl, sugar jar, milk jug
    """,
    "Kitchen and baking": """
        cake, cake case, cake tin, cakestand, cake stand, baking, bake, bowl, plate, jar, jam, jam
        making, cutlery, apron, kitchen, oven, recipe, recipe box, cookie, cookie cutter, cutter,
        pan, mould, spoon, whisk, measuring, kitchen scale, tray, pantry, dish, jug, toast, bread
        bin, egg, egg cup, biscuit tin, lunch, lunch box, snack, cupcake, food container, breakfast,
        dinner, tea towel, oven glove, oven mitt, wine glass, tumbler, water bottle, goblet, salt,
        pepper, butter dish, fork, teaspoon, spatula, colander, chopping board, cheese, rolling pin,
        flask, herb, spice, pudding, platter, ice cream, lolly, sundae, chopstick, beaker, placemat,
        cooking, honeypot, salad, tea plate, cake fork
    """,
    "Cards and gift wrap": """
        card, birthday card, greeting, envelope, wrap, gift, gift wrap, gift tag, gift bag, gift
        box, gift tape, wrapping, ribbon, ribbon reel, tag, tissue ream, postcard, valentine
    """,
    "Stationery and craft": """
        notebook, note book, pencil, pencil tube, pencil case, pen, sticker, sketchbook, memo,
        memoboard, memo board, memo pad, tape, ruler, eraser, journal, calendar, chalk, craft,
        sewing, sewing box, sewing kit, knitting, felt, felt craft, feltcraft, magnet, stamp,
        notepad, address book, writing, sharpener, crayon, paint, clip, scissor, stationery,
        decoupage, embroidery, pin cushion, button, origami, pompom, marker, bookcover, cross
        stitch, colouring, drawing, paperweight, modelling clay, calculator
    """,
    "Toys and games": """
        toy, soft toy, game, card game, snap card, playing card, jigsaw, puzzle, doll, dominoes,
        ludo, soldier, skittle, harmonica, playhouse, teddy, marble, skipping, rocking horse,
        puppet, musical, money bank, money box, piggy bank, croquet, rounder, tattoo, bubble, robot,
        rattle, balloon pump, bingo, helicopter, glider, snake ladder, ball, spinning top, flying
        disc, creepy crawlies, creepy crawlie
    """,
    "Garden": """
        garden, gardener, gardening, plant, plant pot, planter, plantpot, flowerpot, flower pot,
        watering, watering can, birdhouse, bird house, bird feeder, bird table, bird bath, feeder,
        dovecote, trellis, seed, potting, potting shed, grow, herb marker, trowel, spade, kneeling
        pad, windmill, windchime, chime, thermometer, artificial flower, hammock, gnome, secateur,
        wasp catcher, beach
    """,
    "Textiles": """
        cushion, cushion cover, towel, tea towel, teatowel, blanket, throw, quilt, curtain, doormat,
        door mat, mat, rug, tablecloth, table cloth, hot water bottle, hottie, lace, pouffe, cover,
        patchwork, peg bag, flannel, fabric
    """,
    "Storage": """
        box, boxes, tin, storage, storage bag, storage box, basket, drawer, cabinet, chest, bin,
        tidy, rack, shelf, shelves, crate, bucket, container, hamper, cupboard, toastrack, letter
        rack, magazine rack, tub, caddy, organiser, pail, storage tin, storage jar, treasure
    """,
    "Home decoration": """
        hook, coathook, hanger, coat hanger, knob, drawer knob, drawerknob, doorstop, door hanger,
        peg, ornament, bird ornament, decoration, wreath, hanging heart, hanging decoration, heart
        decoration, vase, cherub, angel, dove, bell, decorative, fridge magnet, wicker, birdcage,
        cloche, screen, stool, chair
    """,
}
"""The words and phrases of each category, more specific categories first. A final "s" is ignored.
At each position of a title the longest phrase matches, and its words match nothing else."""

IGNORED_PHRASES = (
    "light pink, light blue, light green, box of, gin tonic, rustic charm, jam jar, cup of tea"
)
"""Phrases that describe the look or the number of articles."""


def derive_categories(title: str) -> tuple[str, ...]:
    """Derive the categories of an article: none, one or two."""
    words, position = _split_words(title), 0
    found: set[str] = set()
    while position < len(words):
        longest = min(_LONGEST, len(words) - position)
        phrases = (words[position : position + length] for length in range(longest, 0, -1))
        phrase = next(
            (phrase for phrase in phrases if phrase in _CATEGORIES_BY_PHRASE),
            words[position : position + 1],
        )
        found |= _CATEGORIES_BY_PHRASE.get(phrase, frozenset())
        position += len(phrase)
    return tuple(category for category in RULES if category in found)[:MAX_CATEGORIES]


def _split_words(text: str) -> tuple[str, ...]:
    """Split a text into lower-case words, each without a final "s"."""
    return tuple(word.removesuffix("s") or word for word in re.findall(r"[a-z0-9]+", text.lower()))


def _index_phrases() -> dict[tuple[str, ...], frozenset[str]]:
    """Index the categories of each phrase; none for ignored phrases."""
    index = {_split_words(phrase): frozenset[str]() for phrase in IGNORED_PHRASES.split(",")}
    for category, phrases in RULES.items():
        for phrase in phrases.split(","):
            words = _split_words(phrase)
            index[words] = index.get(words, frozenset()) | {category}
    return index


_CATEGORIES_BY_PHRASE = _index_phrases()
_LONGEST = max(len(phrase) for phrase in _CATEGORIES_BY_PHRASE)


def main() -> None:
    """Derive and write the categories of every article."""
    items = pl.read_parquet(ITEMS)
    categories = [list(derive_categories(title)) for title in items["title"]]
    items.with_columns(pl.Series("categories", categories, dtype=pl.List(pl.String))).write_parquet(
        ITEMS
    )


if __name__ == "__main__":
    main()
