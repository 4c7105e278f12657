"""How an operation names its body: `proposal: Annotated[Proposal, Body]` reads strictly and validates once."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.params.models import Body as NinjaBody
from ninja.params.models import BodyModel
from pydantic import BaseModel, ValidationError
from steadyhand.contract import MAX_BODY_BYTES, MAX_REPORT_BYTES, Manifest, Report
from steadyhand.identity import MAX_FIELDS

from console.api import parsing, remedies
from console.api.parsing import Refused

M = TypeVar("M", bound=BaseModel)


def read(request: HttpRequest, model: type[M]) -> M:
    """The body as `model`, in pydantic's strict mode. Raises Refused with every fault at once."""
    fields = parsing.MAX_MANIFEST_FIELDS if model is Manifest else MAX_FIELDS
    limit = MAX_REPORT_BYTES if model is Report else MAX_BODY_BYTES
    document = parsing.document(request, fields=fields, limit=limit)
    try:
        return model.model_validate_json(document.text, strict=True)
    except ValidationError as wrong:
        raise Refused(422, *remedies.faults(wrong, document.value)) from wrong


class StrictBody(BodyModel):
    """Takes the place of ninja's own reading, so that the documentation still knows the model."""

    @classmethod
    def resolve(cls, request: HttpRequest, api: NinjaAPI, path_params: dict[str, Any]) -> StrictBody:
        name = cls.__read_from_single_attr__
        model = cast("type[BaseModel]", cls.model_fields[name].annotation)
        values: dict[str, Any] = {name: read(request, model)}
        return cls.model_construct(**values)


class _Body(NinjaBody):  # type: ignore[misc]  # ninja's own parameters extend pydantic's FieldInfo too
    _model = StrictBody

    @classmethod
    def _param_source(cls) -> str:
        return "body"


Body: Any = _Body(...)
