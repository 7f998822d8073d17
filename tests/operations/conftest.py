"""The database and store fixtures of the tests of `app`."""

from tests.app.conftest import (  # noqa: F401 - a fixture is found where it is named
    bundle_store,
    database_url,
    migrated_database_url,
    migrated_postgresql_url,
    migrated_sqlite_url,
    postgresql_server,
    postgresql_template,
    postgresql_url,
    published,
    settings,
    sqlite_template,
    sqlite_url,
)
