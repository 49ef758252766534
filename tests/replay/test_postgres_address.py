"""Addresses of PostgreSQL databases, without a server: what they say, and that their password is not shown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from askance.errors import MissingExtra, StoreError
from askance.replay import open_records
from askance.replay.postgres_database import PostgresAddress

SHOWN = {
    "postgres://askance@db/ads": "postgres://askance@db/ads",
    "postgres://me:a%40secret@db.example:5433/ads?schema=team&sslmode=require": (
        "postgres://me@db.example:5433/ads?sslmode=require&schema=team"
    ),
    "postgres://db/ads?password=a%40secret": "postgres://db/ads",
    "postgres://me@/ads?host=/run/postgresql&front=/scratch/front": (
        "postgres://me@/ads?host=/run/postgresql&front=/scratch/front"
    ),
    "postgresql:///ads": "postgres:///ads",
}


@pytest.mark.parametrize(("address", "shown"), SHOWN.items(), ids=range(len(SHOWN)))
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    read = PostgresAddress.parse(address.partition(":")[2])

    assert str(read) == shown
    assert PostgresAddress.parse(shown.partition(":")[2]).connection == read.connection
    assert "secret" not in repr(read)
    assert read.password == ("a@secret" if "secret" in address else None)


@pytest.mark.parametrize("rest", ["", "db/ads", "//db:port/ads", "//db/ads?schema", "//me:secret@db/ads#part"])
def test_what_is_no_address_is_refused_and_not_shown(rest: str) -> None:
    with pytest.raises(
        StoreError, match=r"^The address of the records is no address of a PostgreSQL database\."
    ) as caught:
        open_records(f"postgres:{rest}")
    assert "secret" not in str(caught.value)


def test_a_schema_is_a_plain_name() -> None:
    with pytest.raises(StoreError, match=r"^'public; DROP' cannot be a schema of records\. Use small letters"):
        open_records("postgres://db/ads?schema=public;%20DROP")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"^psycopg is not installed\. pip install 'askance\[postgres\]'"):
        open_records("postgres://db/ads")


def test_a_front_is_a_folder_of_the_users() -> None:
    assert PostgresAddress.parse("//db/ads?front=~/front").front == Path("~/front").expanduser()
