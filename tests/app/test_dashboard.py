"""The dashboard's files and headers; tests/browser covers the pages."""

import re
from pathlib import Path

import pytest

import app.dashboard
from tests.app.client import Client


def test_the_policy_allows_only_the_service_itself(shared_client: Client) -> None:
    page = shared_client.get("/dashboard/")
    assert page.status_code == 200
    directives = page.headers["content-security-policy"].split("; ")
    policy = dict(directive.split(" ", 1) for directive in directives)
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


@pytest.mark.parametrize(
    "path",
    [
        "",
        "customers/main.js",
        "shell/style.css",
        "vendor/plotly-basic.min.js",
        "items.html",
        "vendor/lit-html.LICENSE",
    ],
)
def test_every_file_has_the_same_security_headers(shared_client: Client, path: str) -> None:
    file = shared_client.get(f"/dashboard/{path}")
    assert file.status_code == 200
    assert "content-security-policy" in file.headers
    assert "content-type" in file.headers
    assert file.headers["x-content-type-options"] == "nosniff"
    assert file.headers["referrer-policy"] == "no-referrer"
    assert file.headers["cross-origin-opener-policy"] == "same-origin"
    assert file.headers["cross-origin-resource-policy"] == "same-origin"
    features = file.headers["permissions-policy"].split(", ")
    assert {"camera=()", "geolocation=()", "microphone=()"} <= set(features)
    assert all(feature.endswith("=()") for feature in features)


def test_a_304_response_has_the_security_headers(shared_client: Client) -> None:
    etag = shared_client.get("/dashboard/items.html").headers["etag"]
    again = shared_client.get("/dashboard/items.html", headers={"If-None-Match": etag})
    assert again.status_code == 304
    assert "default-src 'none'" in again.headers["content-security-policy"]


def test_large_scripts_start_with_the_hint_to_compile_them(shared_client: Client) -> None:
    vendor = Path(app.dashboard.__file__).parent / "static" / "vendor"
    served = shared_client.get("/dashboard/vendor/plotly-basic.min.js")
    assert served.headers["content-type"].startswith("text/javascript")
    # V8 reads the hint on the first line only.
    hint = b"//# allFunctionsCalledOnLoad\n"
    assert served.content == hint + (vendor / "plotly-basic.min.js").read_bytes()
    assert shared_client.get("/dashboard/swagger-ui-bundle.js").content.startswith(hint)
    lit = shared_client.get("/dashboard/vendor/lit-html.js").content
    assert lit == (vendor / "lit-html.js").read_bytes()


@pytest.mark.parametrize("path", ["missing.js", "..%2frouter.py", "%2e%2e/router.py"])
def test_nothing_else_is_served(shared_client: Client, path: str) -> None:
    assert shared_client.get(f"/dashboard/{path}").status_code == 404


def test_the_reference_of_the_api_comes_from_the_service(shared_client: Client) -> None:
    redirect = shared_client.get("/docs")
    assert (redirect.status_code, redirect.headers["location"]) == (307, "dashboard/docs.html")
    page = shared_client.get("/dashboard/docs.html")
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert {"swagger-ui-bundle.js", "swagger-ui.css", "docs/main.js"} <= {*loaded}
    for path in loaded:
        assert shared_client.get(f"/dashboard/{path}").status_code == 200, path
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert shared_client.get("/redoc").status_code == 404
