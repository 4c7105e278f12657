"""What the code asks its models for, answered from memory: the part of Django's querysets that it uses."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db import IntegrityError
from django.db.models import Max, Min, Model, Q
from django.db.models.expressions import DatabaseDefault

from tests.simulation.queries import Row, Test, Unknown, holds, path
from tests.simulation.tables import Memory, column, instance

Get = Callable[[], Memory]


class Rows:
    """Rows of one table that fit: narrowed, ordered, read, counted, changed."""

    resolve_expression = None
    """Its presence marks what stands for a set of values on the right of a condition."""

    def __init__(self, model: type[Model], memory: Get, *, known: dict[str, Any] | None = None) -> None:
        self.model, self._memory = model, memory
        self._known = known or {}
        self._tests: tuple[Test, ...] = ()
        self._order: tuple[str, ...] = ()
        self._cut: slice | None = None
        self._fields: tuple[str, ...] | None = None
        self._shape = "instances"
        self._distinct = False
        self._more: dict[str, Any] = {}
        self._cache: list[Any] | None = None

    @property
    def query(self) -> Standing:
        return Standing(self)

    def seen_from(self, model: type[Model], row: Row) -> Rows:
        """The same as a subquery of a question about this row."""
        self._memory().around = (model, row)
        return self

    def annotate(self, **more: Any) -> Rows:
        return self._but(_more={**self._more, **more})

    # --- narrowing ----------------------------------------------------------------------------------------------

    def _but(self, **changes: Any) -> Rows:
        made = Rows.__new__(Rows)
        made.__dict__.update(self.__dict__, _cache=None, **changes)
        return made

    def all(self, *_: Any, **__: Any) -> Rows:
        return self._but()

    using = db_manager = select_related = select_for_update = prefetch_related = only = defer = get_queryset = all

    def filter(self, *questions: Q, **named: Any) -> Rows:
        asked = Q(*questions, **named)
        return self._but(_tests=(*self._tests, holds(self._memory(), self.model, asked))) if asked else self._but()

    def exclude(self, *questions: Q, **named: Any) -> Rows:
        return self.filter(~Q(*questions, **named))

    def for_tenant(self, tenant_id: Any) -> Rows:
        return self.filter(tenant_id=tenant_id)

    def none(self) -> Rows:
        return self._but(_tests=(*self._tests, lambda row: False))

    def order_by(self, *names: str) -> Rows:
        return self._but(_order=names)

    def reverse(self) -> Rows:
        return self._but(
            _order=tuple(one[1:] if one.startswith("-") else f"-{one}" for one in self._order or ("pk",))
        )

    def distinct(self) -> Rows:
        return self._but(_distinct=True)

    def values_list(self, *names: str, flat: bool = False, named: bool = False) -> Rows:
        shape = "flat" if flat else "named" if named else "tuples"
        return self._but(_fields=names or self._every(), _shape=shape)

    def values(self, *names: str) -> Rows:
        return self._but(_fields=names or self._every(), _shape="dicts")

    def _every(self) -> tuple[str, ...]:
        return tuple(field.attname for field in self.model._meta.concrete_fields)

    # --- reading ------------------------------------------------------------------------------------------------

    def _found(self) -> list[Row]:
        rows: Iterable[Row] = self._memory().read(self.model)
        if self._known:
            known = [(name, value) for name, value in self._known.items()]
            rows = (row for row in rows if all(row[name] == value for name, value in known))
        found = [row for row in rows if all(test(row) for test in self._tests)]
        for name in reversed(self._order):
            found = _sorted(found, *self._place(name))
        return found[self._cut] if self._cut is not None else found

    def _place(self, name: str) -> tuple[Callable[[Row], Any], bool]:
        read, _ = path(self.model, name.lstrip("-"))
        memory = self._memory()
        return (lambda row: read(memory, row)[0]), name.startswith("-")

    def _read(self) -> list[Any]:
        if self._cache is None:
            self._cache = self._shaped(self._found())
        return self._cache

    def _shaped(self, found: list[Row]) -> list[Any]:
        if self._fields is None:
            seen: list[Any] = [instance(self.model, row) for row in found]
            for name, asked in self._more.items():
                test = holds(self._memory(), self.model, Q(asked))
                for one, row in zip(seen, found, strict=True):
                    setattr(one, name, test(row))
            return list({one.pk: one for one in seen}.values()) if self._distinct else seen
        memory, reads = self._memory(), [path(self.model, name)[0] for name in self._fields]
        told: list[Any] = [tuple(read(memory, row)[0] for read in reads) for row in found]
        if self._distinct:
            told = list(dict.fromkeys(told))
        if self._shape == "flat":
            return [one[0] for one in told]
        if self._shape == "named":
            row = namedtuple("Row", self._fields)  # type: ignore[misc]
            return [row(*one) for one in told]
        return [dict(zip(self._fields, one, strict=True)) for one in told] if self._shape == "dicts" else told

    def flat_values(self) -> list[Any]:
        """The first column of what is found: what a subquery comes to."""
        one = self if self._fields else self.values_list("pk", flat=True)
        return one._but(_shape="flat")._read()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())

    iterator = __iter__

    def __len__(self) -> int:
        return len(self._read())

    def __bool__(self) -> bool:
        return bool(self._read())

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self._but(_cut=at)
        return self._read()[at]

    def exists(self) -> bool:
        return bool(self._found())

    def count(self) -> int:
        return len(self._read())

    def first(self) -> Any:
        ordered = self if self._order or self._cut else self.order_by("pk")
        return next(iter(ordered), None)

    def last(self) -> Any:
        return self.reverse().first()

    def latest(self, *names: str) -> Any:
        found = self.order_by(*(f"-{name}" for name in names)).first()
        if found is None:
            raise self.model.DoesNotExist
        return found

    def get(self, *questions: Q, **named: Any) -> Any:
        found = self.filter(*questions, **named)._read()
        if not found:
            raise self.model.DoesNotExist(f"no {self.model.__name__} like {named or questions}")
        if len(found) > 1:
            raise self.model.MultipleObjectsReturned(f"{len(found)} {self.model.__name__} like {named or questions}")
        return found[0]

    def in_bulk(self, keys: Iterable[Any]) -> dict[Any, Any]:
        return {one.pk: one for one in self.filter(pk__in=list(keys))}

    def aggregate(self, **asked: Any) -> dict[str, Any]:
        return {name: self._aggregated(one) for name, one in asked.items()}

    def _aggregated(self, asked: Any) -> Any:
        pick = {Max: max, Min: min}.get(type(asked))
        if pick is None:
            raise Unknown(f"aggregate {type(asked).__name__}")
        name = asked.source_expressions[0].name
        told = [value for value in self.values_list(name, flat=True) if value is not None]
        return pick(told) if told else None

    # --- writing ------------------------------------------------------------------------------------------------

    def create(self, **values: Any) -> Any:
        memory = self._memory()
        memory.writes()
        with memory.atomic():
            return instance(self.model, memory.insert(self.model, self._known | values))

    def bulk_create(self, made: Iterable[Model], *, ignore_conflicts: bool = False, **_: Any) -> list[Any]:
        made = list(made)
        for one in made:
            try:
                saved(self._memory)(one)
            except IntegrityError:
                if not ignore_conflicts:
                    raise
        return made

    def get_or_create(self, defaults: dict[str, Any] | None = None, **named: Any) -> tuple[Any, bool]:
        found = self.filter(**named).first()
        plain = {name: value for name, value in named.items() if "__" not in name}
        return (found, False) if found is not None else (self.create(**plain, **(defaults or {})), True)

    def update_or_create(self, defaults: dict[str, Any] | None = None, **named: Any) -> tuple[Any, bool]:
        found = self.filter(**named)
        if found.update(**(defaults or {})):
            return found.get(), False
        return self.create(**named, **(defaults or {})), True

    def update(self, **changes: Any) -> int:
        memory, found = self._memory(), self._found()
        memory.writes()
        with memory.atomic():
            for row in found:
                memory.change(self.model, row, changes)
        return len(found)

    def delete(self) -> tuple[int, dict[str, int]]:
        memory, found = self._memory(), self._found()
        with memory.atomic():
            for row in found:
                memory.delete(self.model, row)
        return len(found), {}


class Standing:
    """What Django's own subqueries hold in the place of a query."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def clone(self) -> Standing:
        return self

    exists = clone


class Door:
    """A model's manager: every use begins anew."""

    def __init__(self, model: type[Model], memory: Get) -> None:
        self._model, self._memory = model, memory

    def __get__(self, held: Any, owner: Any = None) -> Rows:
        return Rows(self._model, self._memory)

    def __getattr__(self, name: str) -> Any:
        return getattr(Rows(self._model, self._memory), name)


class Reverse:
    """The rows of another table that point at this one."""

    def __init__(self, model: type[Model], name: str, memory: Get) -> None:
        self._model, self._name, self._memory = model, column(model, name), memory

    def __get__(self, held: Any, owner: Any = None) -> Any:
        if held is None:
            return self
        return Rows(self._model, self._memory, known={self._name: held.pk})


def refresh(memory: Get) -> Callable[..., None]:
    """`refresh_from_db` of a row in memory."""

    def refresh_from_db(self: Model, using: Any = None, fields: Any = None, **_: Any) -> None:
        memory().reads()
        row = memory().by_id(type(self), self.pk)
        if row is None:
            raise type(self).DoesNotExist
        wanted = (
            row if fields is None else {column(type(self), name): row[column(type(self), name)] for name in fields}
        )
        self.__dict__.update(wanted)
        self._state.fields_cache.clear()

    return refresh_from_db


def given(row: Model) -> dict[str, Any]:
    """What a row that is not stored yet has of its columns; the rest is the database's to fill."""
    names = [field.attname for field in row._meta.concrete_fields]
    held = {name: row.__dict__[name] for name in names if name in row.__dict__}
    return {name: value for name, value in held.items() if not isinstance(value, DatabaseDefault)}


def saved(memory: Get) -> Callable[..., None]:
    """`save` of a row."""

    def save(self: Model, *_: Any, update_fields: Iterable[str] | None = None, **__: Any) -> None:
        memory().writes()
        if not self._state.adding:
            names = update_fields or [field.attname for field in self._meta.concrete_fields]
            old = memory().by_id(type(self), self.pk)
            assert old is not None
            with memory().atomic():
                memory().change(type(self), old, {name: getattr(self, name) for name in names})
            return
        with memory().atomic():
            row = memory().insert(type(self), given(self))
        self.__dict__.update(row)
        self._state.adding = False

    return save


def _sorted(found: list[Row], key: Callable[[Row], Any], backwards: bool) -> list[Row]:
    """As PostgreSQL orders: nothing comes last, and first where the order is turned round."""
    known = sorted((row for row in found if key(row) is not None), key=key, reverse=backwards)
    unknown = [row for row in found if key(row) is None]
    return unknown + known if backwards else known + unknown


__all__ = ["Door", "IntegrityError", "Reverse", "Rows", "given", "refresh", "saved"]
