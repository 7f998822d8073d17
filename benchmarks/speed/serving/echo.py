"""A bare FastAPI service: parses the JSON body and returns it; what the framework alone costs."""

import sys

import orjson
import uvicorn
from fastapi import FastAPI, Request, Response

app = FastAPI()


@app.post("/v1/recommendations")
async def echo(request: Request) -> Response:
    """Return the body."""
    body = orjson.loads(await request.body())
    return Response(orjson.dumps(body), media_type="application/json")


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
