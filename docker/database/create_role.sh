#!/bin/sh
# Run by the image of PostgreSQL when the volume is created: the database, and the role of Kairos, which owns
# it and is no superuser: a stolen password gives access to this database, not to files or programs.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$DATABASE_PASSWORD" \
    --username "$POSTGRES_USER" --dbname postgres <<'SQL'
CREATE ROLE kairos LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD :'password';
CREATE DATABASE kairos OWNER kairos;
REVOKE ALL ON DATABASE kairos FROM PUBLIC;
SQL
