"""What the names of actions say."""

import pytest

from model.actions import is_purchase, is_undoing


@pytest.mark.parametrize(
    "action",
    [
        *("purchase", "BUY", "order-completed", "product_purchased", "ItemBought", "buy_now"),
        *("order_placed", "place_order", "order_paid", "purchase_confirmed", "first_purchase"),
    ],
)
def test_purchases_are_recognised(action: str) -> None:
    assert is_purchase(action)
    assert not is_undoing(action)


@pytest.mark.parametrize(
    "action",
    [
        *("abandoned_purchase", "not_purchased", "order_failed", "buy_later", "OrderPageClosed"),
        *(
            "view",
            "sunday_sales_report",
            "purchase_intent",
            "order_details",
            "purchase_page",
            "to_buy",
            "add_to_order",
            "kauf",
            "\u8d2d\u4e70",
            "",
            "-",
            "items",
        ),
    ],
)
def test_other_words_make_it_something_else(action: str) -> None:
    assert not is_purchase(action)


@pytest.mark.parametrize(
    "action",
    [
        *("cancel", "purchase_cancelled", "returned", "refund", "remove_from_cart", "unlike"),
        *("Unsubscribe", "unfollowed", "chargeback", "ItemUnliked", "UNSAVED"),
    ],
)
def test_what_undoes_others_is_no_purchase(action: str) -> None:
    assert is_undoing(action)
    assert not is_purchase(action)


@pytest.mark.parametrize("action", ["subscribe", "install", "understand", "sunlike", "view"])
def test_words_that_look_similar_undo_nothing(action: str) -> None:
    assert not is_undoing(action)
