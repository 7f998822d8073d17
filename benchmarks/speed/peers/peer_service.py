"""A bare FastAPI around a peer's model, with the bodies of POST /v1/recommendations."""

import argparse
import random
import time

import orjson
import uvicorn
from fastapi import FastAPI, Request, Response

DIM, BLOCKS, HEADS, MAX_HISTORY, TOP_N = 64, 2, 1, 200, 10
_EVENTS_PER_USER = 50


def parse_arguments(description):
    """Parse the port and the number of items."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--items", type=int, default=5_000)
    return parser.parse_args()


def draw_events(items):
    """Draw events (user, item, epoch seconds) in which every item occurs twice."""
    numbers = list(range(items)) * 2
    random.Random(0).shuffle(numbers)
    now = int(time.time()) - len(numbers)
    return [
        (place // _EVENTS_PER_USER, f"i{number}", now + place)
        for place, number in enumerate(numbers)
    ]


def serve(recommend, port):
    """Serve a function of the item ids and the instants of a history, which returns item ids."""
    app = FastAPI()

    @app.post("/v1/recommendations")
    async def answer(request: Request):
        history = orjson.loads(await request.body())["history"]
        items = recommend(
            [event["item_id"] for event in history], [event["timestamp"] for event in history]
        )
        return Response(orjson.dumps({"items": items}), media_type="application/json")

    uvicorn.run(
        app, port=port, loop="uvloop", http="httptools", log_level="warning", access_log=False
    )
