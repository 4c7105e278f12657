"""The album of pictures: every page of the console is in it, or is left out for a reason that is written down."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import URLPattern, resolve

from console.urls import urlpatterns
from demo.album import ALBUM, UNPICTURED, Picture

PROOF = "00000000-0000-4000-8000-000000000000"
PICTURED = {one.route for one in ALBUM}


def address(pattern: URLPattern) -> str:
    """An address that this pattern answers; what it names need not exist."""
    text = str(pattern.pattern)
    for name, converter in pattern.pattern.converters.items():
        kind = type(converter).__name__.removesuffix("Converter").lower()
        text = text.replace(f"<{kind.removeprefix('string') or 'str'}:{name}>", PROOF)
    return f"/{text}"


ROUTES = {str(one.name): one for one in urlpatterns if isinstance(one, URLPattern)}


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(ROUTES))
def test_every_route_that_answers_a_get_is_pictured_or_left_out_for_a_reason(name: str) -> None:
    path = address(ROUTES[name])
    assert resolve(path).url_name == name
    if Client().get(path).status_code == 405:
        assert name not in PICTURED | UNPICTURED.keys(), "it only acts: the album need not know it"
    else:
        assert (name in PICTURED) != (bool(UNPICTURED.get(name))), f"{name} belongs in ALBUM or in UNPICTURED"


def test_the_album_names_only_routes_that_exist_and_no_picture_twice() -> None:
    assert (PICTURED | UNPICTURED.keys()) <= ROUTES.keys()
    names = [one.name for one in ALBUM]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("picture", ALBUM, ids=lambda one: one.name)
def test_every_page_of_the_album_has_its_pictures_beside_the_docs(picture: Picture) -> None:
    from demo.camera import FOLDER

    wanted = [f"{picture.name}-{scheme}.png" for scheme in ("light", "dark")]
    wanted += [f"{picture.name}-light-narrow.png"] if picture.narrow else []
    assert [name for name in wanted if not (FOLDER / name).is_file()] == []
