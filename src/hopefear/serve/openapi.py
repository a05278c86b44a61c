"""Description of requests and answers, as OpenAPI has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hopefear import __version__
from hopefear.serve.requests import MAX_INPUTS, NUMBERS

Schema = dict[str, Any]

_TEXT, _NUMBER, _WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
_REQUESTS = {
    "predict": ("The best output of every input", "Output"),
    "nbest": ("The n best outputs of every input, with probabilities", "Ranking"),
    "explain": ("What made answers beat the runners-up", "Reasons"),
}
_WORDS = {
    "unknown": "Of a classifier: the label is unknown_label where none is as probable as this.",
    "n": "How many.",
    "top": "Features to tell of each.",
    "sentence": "Which sentence, from 0.",
    "token": "Which token of it, from 0; without it all, where they are few.",
}
_VIEWS = {
    "/models": ("The models, and what they read", "application/json"),
    "/health": ("Whether it answers", "application/json"),
    "/metrics": ("Counts and times, for Prometheus", "text/plain"),
}
_ERRORS = ("400", "401", "403", "404", "408", "413", "415", "431", "500", "503", "504")


def document() -> dict[str, Any]:
    """Returns the document.

    >>> sorted(document()["paths"])
    ['/explain', '/health', '/metrics', '/models', '/nbest', '/predict']
    """
    place = {"text": _TEXT, "start": _WHOLE, "end": _WHOLE}
    measures = {"score": _NUMBER, "probability": _NUMBER, "share": _NUMBER}
    marks = {"tokens": _list(_named("Token")), "spans": _list(_named("Span"))}
    spoken = {"sentence": _WHOLE, "token": _WHOLE, "text": _TEXT, "note": _TEXT}
    why = {"label": {}, "runner_up": {}, "gap": _NUMBER, "more": _WHOLE}
    features = _list(_object({"name": _TEXT, "amount": _NUMBER}))
    choice = {"label": _TEXT, **measures}
    candidate = {"position": _WHOLE, "text": _TEXT, "tree": _TEXT, **measures}
    ranked = _object({**place, "outputs": _list(_object({**measures, **marks}))})
    schemas = {
        "Error": _object({"error": _TEXT}, "error"),
        "Token": _object(
            {**place, "label": _TEXT, "head": _WHOLE, "relation": _TEXT},
            "text",
            words="start and end are characters of the text; heads are counted from 1, 0 is none",
        ),
        "Span": _object(
            {**place, "label": _TEXT, "probability": _NUMBER},
            "label",
            words="start and end are characters of the text; tokens, from 0, of given tokens",
        ),
        "Output": _object(
            {
                "sentences": _list(_object({**place, **marks})),
                **{"id": _TEXT, "best": _WHOLE, "text": _TEXT, **choice},
                "probabilities": {"type": "object"},
            },
            words="sentences of texts; label of a classifier; best, from 0, of a reranker",
        ),
        "Ranking": _object(
            {
                "sentences": _list(ranked),
                "outputs": _list(_object(choice)),
                "id": _TEXT,
                "candidates": _list(_object(candidate)),
            }
        ),
        "Reasons": _object({"reasons": _list(_object({**spoken, **why, "features": features}))}),
    }
    paths: Schema = {f"/{verb}": _request(verb, *facts) for verb, facts in _REQUESTS.items()}
    for path, (words, kind) in _VIEWS.items():
        answer = {"description": words, "content": {kind: {"schema": {}}}}
        paths[path] = {"get": {"summary": words, "responses": {"200": answer}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "hopefear", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _request(verb: str, words: str, output: str) -> Schema:
    fields: Schema = {
        "model": {**_TEXT, "description": "Its name; may be left out where there is one model."},
        "input": {"description": "A text, or what GET /models says that the model reads."},
        "inputs": {**_list({}), "minItems": 1, "maxItems": MAX_INPUTS},
    }
    for name, (least, most, usual) in NUMBERS[verb].items():
        kind = _WHOLE if isinstance(least, int) else _NUMBER
        fields[name] = {**kind, "minimum": least, "maximum": most, "description": _WORDS[name]}
        if usual is not None:
            fields[name]["default"] = usual
    if "unknown" in fields:
        fields["unknown_label"] = {**_TEXT, "default": "unknown"}
        words = "Probabilities too: of all classes, of tokens and spans, of the candidate."
        fields["proba"] = {"type": "boolean", "default": False, "description": words}
    body = _object(fields) | {
        "additionalProperties": False,
        "oneOf": [{"required": ["input"]}, {"required": ["inputs"]}],
    }
    one = {"model": _TEXT, "output": _named(output)}
    several = {"model": _TEXT, "outputs": _list(_named(output))}
    answer = {"oneOf": [_object(one, *one), _object(several, *several)]}
    error = {"description": "What is wrong, in words", **_json(_named("Error"))}
    answers = {"200": {"description": "In the order of the inputs", **_json(answer)}}
    return {
        "post": {
            "summary": words,
            "requestBody": {"required": True, **_json(body)},
            "responses": {**answers, **dict.fromkeys(_ERRORS, error)},
        }
    }


def _object(fields: Mapping[str, Any], *required: str, words: str = "") -> Schema:
    schema: Schema = {"type": "object", "properties": dict(fields)}
    if required:
        schema["required"] = list(required)
    return schema | ({"description": words} if words else {})


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _named(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: Schema) -> Schema:
    return {"content": {"application/json": {"schema": schema}}}
