"""Makes worker/bedrock_goldens.json: botocore's signatures, and its parsing results for the stand-in's answers.

botocore conflicts with the operator's dependencies. So run this separately after a change of the stand-in, from the
repository's root, in an environment with botocore and the gateway's package:

    PYTHONPATH=.:gateway/src python -m e2e.bedrock_goldens > e2e/worker/bedrock_goldens.json
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import botocore
from botocore import auth, loaders, model, parsers, validate
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.credentials import Credentials
from botocore.eventstream import EventStream
from proofgate import mock_bedrock
from proofgate.mock_answers import MockBehaviour

KEY = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
DATE = datetime(2026, 11, 20, 12, tzinfo=UTC)
OPERATIONS = {
    "converse": "Converse",
    "converse-stream": "ConverseStream",
    "invoke": "InvokeModel",
    "invoke-with-response-stream": "InvokeModelWithResponseStream",
}
MODELS = (
    "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0",
    "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fa1b2c3",
)


def answer(path: str, body: bytes) -> bytes:
    """The stand-in's answer, whole or as a stream."""
    kind = mock_bedrock.endpoint(path)
    assert kind is not None
    exchange = kind(body, MockBehaviour(tokens=3), 1, path)
    return b"".join(exchange.events()) if exchange.stream else exchange.completion()


def body_of(operation: str) -> bytes:
    """A request of one user."""
    if operation.startswith("converse"):
        return json.dumps({"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}).encode()
    said = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
    return json.dumps({"anthropic_version": "bedrock-2023-05-31", **said}).encode()


def wishes() -> list[bytes]:
    """Requests to Converse whose answers must contain more than text."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [{"toolSpec": {"name": "look", "inputSchema": {"json": schema}}}]
    structure = {"jsonSchema": {"schema": json.dumps(schema), "name": "trip"}}
    picture = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}

    def said(*content: dict[str, Any], **fields: Any) -> bytes:
        return json.dumps({"messages": [{"role": "user", "content": list(content)}], **fields}).encode()

    return [
        said({"text": "mock:calls=2"}, toolConfig={"tools": tools}),
        said({"text": "Hi"}, outputConfig={"textFormat": {"type": "json_schema", "structure": structure}}),
        said({"text": "Hi"}, picture, inferenceConfig={"maxTokens": 2}),
    ]


def check(operation: str, body: bytes) -> None:
    """Raises ValueError for a request that the service model does not allow, or that has more than it knows."""
    service = model.ServiceModel(loaders.Loader().load_service_model("bedrock-runtime", "service-2"))
    shape = service.operation_model(OPERATIONS[operation]).input_shape
    found = validate.ParamValidator().validate({"modelId": "m", **json.loads(body)}, shape)
    if found.has_errors():
        raise ValueError(found.generate_report())


def signed(path: str, body: bytes, token: str | None) -> dict[str, str]:
    """The header fields of a request that botocore has signed."""
    url = f"https://bedrock-runtime.us-east-1.amazonaws.com{path}"
    request = AWSRequest("POST", url, {"Content-Type": "application/json"}, body)
    with mock.patch("botocore.auth.get_current_datetime", return_value=DATE.replace(tzinfo=None)):
        auth.SigV4Auth(Credentials(*KEY, token), "bedrock", "us-east-1").add_auth(request)
    fields = {name.lower(): value for name, value in request.headers.items()}
    return {"host": "bedrock-runtime.us-east-1.amazonaws.com", **fields}


def read(operation: str, answered: bytes) -> Any:
    """The result of parsing an answer with botocore by the service model."""
    service = model.ServiceModel(loaders.Loader().load_service_model("bedrock-runtime", "service-2"))
    shape = service.operation_model(OPERATIONS[operation]).output_shape
    stream = operation.endswith("-stream")
    kind = "application/vnd.amazon.eventstream" if stream else "application/json"
    raw = mock.Mock(stream=lambda: iter([answered]))
    response = {"status_code": 200, "headers": {"content-type": kind}, "context": {}}
    response["body"] = AWSResponse("", 200, {}, raw) if stream else answered
    parser = parsers.create_parser(service.resolved_protocol)
    parsed = parser.parse(response, shape)
    member = {"ConverseStream": "stream"}.get(OPERATIONS[operation], "body")
    if stream:
        events = parsers.create_parser(service.resolved_protocol)._event_stream_parser
        return list(EventStream(raw, shape.members[member], events, OPERATIONS[operation]))
    if "body" in parsed:
        return json.loads(parsed["body"])
    return {name: parsed[name] for name in ("output", "stopReason", "usage")}


def main() -> None:
    """Prints the goldens."""
    asked = [
        (f"/model/{name}/{operation}", body_of(operation), token)
        for name, token in zip(MODELS, (None, "TOKENEXAMPLE"), strict=True)
        for operation in OPERATIONS
    ]
    for body in wishes():
        asked += [
            (f"/model/us.amazon.nova-pro-v1%3A0/{operation}", body, None)
            for operation in ("converse", "converse-stream")
        ]
    cases = []
    for path, body, token in asked:
        operation = path.rpartition("/")[2]
        if operation.startswith("converse"):
            check(operation, body)
        answered = answer(path, body)
        cases.append(
            {
                "path": path,
                "body": body.decode(),
                "token": token,
                "signed": signed(path, body, token),
                "answer": base64.b64encode(answered).decode(),
                "read": read(operation, answered),
            }
        )
    text = json.dumps({"source": f"botocore {botocore.__version__}", "cases": cases}, indent=1, default=_text)
    print(text)


def _text(value: object) -> str:
    assert isinstance(value, bytes)
    return value.decode()


if __name__ == "__main__":
    main()
